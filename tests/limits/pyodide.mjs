// Runs a Python file in Pyodide: node pyodide.mjs FOLDER_OF_NODE_PACKAGES FILE HOST_FOLDER...; the folders are importable.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [packages, file, ...folders] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(join(packages, "node_modules/pyodide/pyodide.mjs")));
const python = await loadPyodide();
for (const folder of folders) {
  const name = folder.split("/").pop();
  python.FS.mkdirTree(`/source/${name}`);
  python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, `/source/${name}`);
}
python.runPython(`import sys; sys.path.insert(0, "/source"); sys.dont_write_bytecode = True`);
python.runPython(readFileSync(file, "utf-8"));
