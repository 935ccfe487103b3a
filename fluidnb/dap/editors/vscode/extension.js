// Tells VS Code how to reach the debug adapter of fluidnb: `launch` starts it on pipes, `attach` connects to one on a port.
"use strict";

const fs = require("fs");
const vscode = require("vscode");

const TYPE = "fluidnb";

/** How the adapter of a session is reached. */
function describe(session) {
  const config = session.configuration;
  if (config.request === "attach") {
    return new vscode.DebugAdapterServer(config.port, config.host || "127.0.0.1");
  }
  const options = config.startup ? ["--startup"] : [];
  const words = ["-m", "fluidnb", "debug", "--stdio", ...options, config.program, ...(config.args || [])];
  return new vscode.DebugAdapterExecutable(config.python || "python3", words, { cwd: config.cwd, env: config.env });
}

/** A configuration with what it leaves out; for F5 without a launch.json the script in the editor. */
function resolve(folder, config) {
  if (config.tokenFile && !config.token) {
    config.token = fs.readFileSync(config.tokenFile, "utf8").trim();
  }
  if (config.type) {
    return { stopOnEntry: true, ...config }; // VS Code takes defaults of package.json for completions alone
  }
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.document.languageId !== "python") {
    return undefined;
  }
  return { type: TYPE, request: "launch", name: "Fluid: this script", program: editor.document.uri.fsPath, stopOnEntry: true };
}

function activate(context) {
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory(TYPE, { createDebugAdapterDescriptor: describe }),
    vscode.debug.registerDebugConfigurationProvider(TYPE, { resolveDebugConfiguration: resolve }),
  );
}

function deactivate() {}

module.exports = { activate, deactivate };
