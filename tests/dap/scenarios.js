// What an editor does with `fluidnb debug`, by @vscode/debugadapter-testsupport. Usage: node scenarios.js NAME SETUP, with SETUP as JSON
// Every message that is sent or received is written to stdout, a line each, for the schema.
"use strict";

const assert = require("assert");
const { spawn } = require("child_process");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

const setup = JSON.parse(process.argv[3]);
const { script, lines } = setup;

/** A client whose messages are written down, and whose events wait until somebody wants them. */
class Client extends DebugClient {
  constructor() {
    super("", "", "fluidnb");
    this.defaultTimeout = 200000; // of a machine that has much to do; the test itself ends sooner
    this.waiting = [];
    this.wanted = [];
  }

  async start(port) {
    await super.start(port);
    this._socket.on("error", (error) => console.error(error.message));
  }

  doSend(command, args, callback) {
    const request = { type: "request", seq: this.sequence, command };
    if (args && Object.keys(args).length > 0) {
      request.arguments = args;
    }
    console.log(JSON.stringify(request));
    super.doSend(command, args, callback);
  }

  dispatch(body) {
    console.log(body);
    const message = JSON.parse(body);
    if (message.type === "event") {
      this.waiting.push(message);
      this.hand();
    }
    super.dispatch(body);
  }

  hand() {
    for (const want of [...this.wanted]) {
      const found = this.waiting.findIndex((e) => e.event === want.name);
      if (found >= 0) {
        const event = this.waiting[found];
        this.waiting.splice(0, found + 1);
        this.wanted.splice(this.wanted.indexOf(want), 1);
        want.give(event.body);
      }
    }
  }

  /** The next event of a name; those before it are passed. */
  next(name) {
    return new Promise((give) => {
      this.wanted.push({ name, give });
      this.hand();
    });
  }

  /** Move, and see where it stops. */
  async move(command, args = {}) {
    await this.send(command, { threadId: this.thread, ...args });
    return this.stopped();
  }

  async stopped() {
    const body = await this.next("stopped");
    this.thread = body.threadId;
    return body;
  }

  async frames() {
    return (await this.stackTraceRequest({ threadId: this.thread })).body.stackFrames;
  }

  async evaluate(expression) {
    const frameId = (await this.frames())[0].id;
    return (await this.evaluateRequest({ expression, frameId })).body.result;
  }

  async end() {
    this.send("continue", { threadId: this.thread });
    const exited = await this.next("exited");
    await this.next("terminated");
    this.stopAdapter();
    return exited.exitCode;
  }
}

async function attached(options = {}, configure = async () => {}) {
  const client = new Client();
  await client.start(setup.port);
  await client.initializeRequest({
    adapterID: "fluidnb", linesStartAt1: true, columnsStartAt1: true, pathFormat: "path",
    supportsVariablePaging: true, supportsInvalidatedEvent: true,
  });
  await Promise.all([client.attachRequest({ token: setup.token, ...options }), client.next("initialized")]);
  await configure(client);
  await client.configurationDoneRequest();
  return client;
}

/** The adapter as the extension describes it. */
function launched() {
  const { command, args, options } = setup.adapter;
  return spawn(command, args, { ...options, stdio: ["pipe", "pipe", "inherit"] });
}

const scenarios = {
  async steps_into_the_loop_and_back() {
    const c = await attached({ stopOnEntry: true });
    assert.strictEqual((await c.stopped()).reason, "entry");
    assert.strictEqual((await c.frames())[0].line, lines.h);
    await c.setBreakpointsRequest({ source: { path: script }, breakpoints: [{ line: lines.more, condition: "i[0] == 1" }] });
    assert.strictEqual((await c.move("continue")).reason, "breakpoint");
    let frames = await c.frames();
    assert.deepStrictEqual(frames.map((f) => f.line), [lines.more, lines.body]);
    assert.ok(frames[0].name.startsWith("block 1, iteration 1"));
    assert.strictEqual(await c.evaluate("i[0]"), "1");
    const before = await c.evaluate("total[0]");
    const scopes = (await c.scopesRequest({ frameId: frames[0].id })).body.scopes;
    const block = scopes.find((s) => s.name === "block 0");
    const held = (await c.variablesRequest({ variablesReference: block.variablesReference })).body.variables;
    const total = held.find((v) => v.name === setup.total);
    await c.setVariableRequest({ variablesReference: block.variablesReference, name: total.name, value: "total * 0 + 40" });
    assert.strictEqual(await c.evaluate("total[0]"), "40.0");
    await c.move("stepBack");
    assert.strictEqual(await c.evaluate("total[0]"), before);
    await c.move("next");
    await c.move("stepOut");
    assert.strictEqual((await c.frames()).length, 1);
    await c.move("stepBack");
    await c.move("stepIn");
    assert.strictEqual((await c.frames()).length, 2);
    await c.move("reverseContinue");
    await c.setBreakpointsRequest({ source: { path: script }, breakpoints: [] });
    assert.strictEqual(await c.end(), 0);
  },

  async breakpoints_wait_until_the_program_is_built() {
    const c = await attached({}, async (client) => {
      const made = await client.setBreakpointsRequest({ source: { path: script }, breakpoints: [{ line: lines.loss }] });
      assert.strictEqual(made.body.breakpoints[0].verified, false);
      await client.setExceptionBreakpointsRequest({ filters: ["error"] });
    });
    const changed = await c.next("breakpoint");
    assert.deepStrictEqual([changed.reason, changed.breakpoint.verified], ["changed", true]);
    const stopped = await c.stopped();
    assert.deepStrictEqual(stopped.hitBreakpointIds, [changed.breakpoint.id]);
    assert.strictEqual((await c.frames())[0].line, lines.loss);
    await c.move("continue"); // the next exe.run
    assert.strictEqual(await c.evaluate("x.mean()"), "2.0");
    await c.move("reverseContinue"); // and back into the one before
    assert.strictEqual(await c.evaluate("x.mean()"), "1.0");
    await c.setBreakpointsRequest({ source: { path: script }, breakpoints: [] });
    assert.strictEqual(await c.end(), 0);
  },

  async data_breakpoints_and_output() {
    const c = await attached({ stopOnEntry: true });
    await c.stopped();
    const info = (await c.dataBreakpointInfoRequest({ name: "total" })).body;
    assert.strictEqual(info.dataId, setup.total);
    await c.setDataBreakpointsRequest({ breakpoints: [{ dataId: info.dataId, accessType: "write", condition: "total[0] > 0" }] });
    assert.strictEqual((await c.move("continue")).reason, "data breakpoint");
    await c.setDataBreakpointsRequest({ breakpoints: [] });
    await c.setFunctionBreakpointsRequest({ breakpoints: [{ name: "mea*" }] });
    assert.strictEqual((await c.move("continue")).reason, "function breakpoint");
    await c.setFunctionBreakpointsRequest({ breakpoints: [] });
    c.send("continue", { threadId: c.thread });
    const said = await c.next("output");
    assert.deepStrictEqual([said.category, said.output], ["stdout", "step 0 ['a', '--b']\n"]);
    await c.next("terminated");
    c.stopAdapter();
  },

  async a_second_client() {
    const first = await attached({ stopOnEntry: true });
    await first.stopped();
    const second = new Client();
    await second.start(setup.port);
    await second.initializeRequest();
    await assert.rejects(second.attachRequest({ token: setup.token }), /Another editor is attached/);
    await first.move("next");
    assert.strictEqual(await first.end(), 0);
  },

  async an_operator_fails() {
    const c = await attached({}, (client) => client.setExceptionBreakpointsRequest({ filters: ["error"] }));
    const stopped = await c.stopped();
    assert.strictEqual(stopped.reason, "exception");
    const info = (await c.exceptionInfoRequest({ threadId: c.thread })).body;
    assert.ok(info.description.includes("reshape"), info.description);
    assert.strictEqual((await c.frames())[0].line, lines.bad);
    c.send("continue", { threadId: c.thread }); // there is no way on: the script gets the error
    let text = "";
    while (!text.includes("RuleError")) {
      const said = await c.next("output");
      assert.strictEqual(said.category, "stderr");
      text += said.output;
    }
    assert.strictEqual((await c.next("exited")).exitCode, 1);
    c.stopAdapter();
  },

  async a_wrong_token() {
    const c = new Client();
    await c.start(setup.port);
    await c.initializeRequest();
    await assert.rejects(c.attachRequest({ token: "guess" }), /The token is wrong/);
    assert.deepStrictEqual(c.waiting, []);
    const right = await attached({ stopOnEntry: true });
    await right.stopped();
    await right.terminateRequest();
    assert.strictEqual((await right.next("exited")).exitCode, 130);
    right.stopAdapter();
  },

  async launched_on_pipes() {
    const c = new Client();
    const child = launched();
    c.connect(child.stdout, child.stdin);
    const gone = new Promise((give) => child.on("exit", give));
    await Promise.all([c.launch({ stopOnEntry: true }), c.configurationSequence()]);
    await c.stopped();
    await c.move("next");
    c.send("continue", { threadId: c.thread });
    assert.strictEqual((await c.next("output")).output, "step 0 ['a', '--b']\n");
    await c.next("terminated");
    c.send("disconnect");
    assert.strictEqual(await gone, 0);
  },

  async an_editor_that_dies_ends_what_it_launched() {
    const child = launched();
    const c = new Client();
    c.connect(child.stdout, child.stdin);
    const gone = new Promise((give) => child.on("exit", give));
    await Promise.all([c.launch({ stopOnEntry: true }), c.configurationSequence()]);
    await c.stopped();
    child.stdin.end();
    assert.strictEqual(await gone, 130);
  },
};

process.exitCode = 2; // when it ends before the scenario does
scenarios[process.argv[2]]().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
