// A `vscode` module that writes down what an extension registers. Usage: node stub_vscode.js EXTENSION.js
"use strict";

const Module = require("module");

class DebugAdapterServer {
  constructor(port, host) {
    Object.assign(this, { kind: "server", port, host });
  }
}

class DebugAdapterExecutable {
  constructor(command, args, options) {
    Object.assign(this, { kind: "executable", command, args, options });
  }
}

const registered = {};
const stub = {
  DebugAdapterServer,
  DebugAdapterExecutable,
  window: {},
  debug: {
    registerDebugAdapterDescriptorFactory: (type, factory) => ({ type, factory, dispose: () => {} }),
    registerDebugConfigurationProvider: (type, provider) => ({ type, provider, dispose: () => {} }),
  },
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? stub : load(name, ...rest));

const extension = require(process.argv[2]);
const context = { subscriptions: [] };
extension.activate(context);
for (const { type, factory, provider } of context.subscriptions) {
  registered[type] = { ...registered[type], ...(factory && { factory }), ...(provider && { provider }) };
}

const { factory, provider } = registered.fluidnb;
const described = (configuration) => factory.createDebugAdapterDescriptor({ configuration });
const resolved = (config) => provider.resolveDebugConfiguration(undefined, config);
const answers = JSON.parse(process.argv[3]).map(({ describe, resolve, file, language }) => {
  stub.window.activeTextEditor = file && { document: { languageId: language, uri: { fsPath: file } } };
  const answer = describe ? described(describe) : resolved(resolve);
  return answer === undefined ? null : answer;
});
extension.deactivate();
console.log(JSON.stringify(answers));
