"""Programs, blocks and operators: model, text, SVG, HTML, graph, table, search, differences."""
