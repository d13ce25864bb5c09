/** Programs that use OpenAI's APIs, unchanged: each with a round of tools and a second turn. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useModel } from "../helpers/app/chat_client.ts";
import { type OpenAiApp, openOpenAiApp } from "../helpers/app/openai_app.ts";
import { openTestApp } from "../helpers/app/test_app.ts";
import type { FakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { startLlama } from "./helpers/llama_server.ts";
import { realPart } from "./helpers/real_part.ts";

const INSTALLED = realPart("REAL_CLIENTS_DIR", "clients.sh");
const PYTHON = realPart("REAL_OPENAI_DIR", "openai.sh");
const LLM = realPart("REAL_LLM_DIR", "llm.sh");
const TOOLS = fileURLToPath(new URL("tools/", import.meta.url));

interface Message {
  role: string;
  content: unknown;
  tool_calls?: unknown[];
}

/**
 * Answers every chat request of the fake: a question with the first tool that is offered, anything else with text.
 * Whether a client passes the results of tools on shows in the next request.
 */
async function answerWithTools(llm: FakeLlm): Promise<never> {
  llm.switches.manual = "on";
  for (let n = 1;; n++) {
    const call = await llm.nextCall();
    const { messages, tools = [] } = call.request.json as {
      messages: Message[];
      tools?: { function: { name: string } }[];
    };
    const last = messages.at(-1)!;
    const isQuestion = last.role === "user" && !JSON.stringify(last.content).includes("Again");
    const names = tools.map(({ function: { name } }) => name);
    if (isQuestion && names.length > 0) {
      await call.think("I need a tool.");
      const args = names.includes("exec_command") ? { cmd: "echo sunny" } : { city: "Oslo" };
      await call.callTools({ id: `call_${n}`, name: names[0]!, arguments: JSON.stringify(args) });
    } else {
      await call.emit(`Reply to ${last.role}`);
      await call.finish();
    }
  }
}

describe.skipIf(INSTALLED === undefined)("with clients of OpenAI's APIs", { timeout: 900_000 }, () => {
  let at: OpenAiApp;
  let home: string;
  beforeAll(async () => {
    at = await openOpenAiApp();
    void answerWithTools(at.llm);
    home = await Deno.makeTempDir({ prefix: "parlor-clients-" });
  });
  afterAll(async () => {
    await at[Symbol.asyncDispose]();
    await Deno.remove(home, { recursive: true });
  });

  async function run(
    program: string,
    args: string[],
    options: { cwd?: string; env?: Record<string, string>; mayFail?: boolean } = {},
  ) {
    const { success, stdout, stderr } = await new Deno.Command(program, {
      args,
      cwd: options.cwd ?? home,
      env: { HOME: home, LITELLM_LOCAL_MODEL_COST_MAP: "True", ...options.env },
      stdin: "null",
    }).output();
    const output = new TextDecoder().decode(stdout);
    expect(success || options.mayFail, `${output}\n${new TextDecoder().decode(stderr)}`).toBe(true);
    return output;
  }
  const base = () => `${at.app.url}/api/v1`;
  /** Roles of the last request's messages. */
  const lastRoles = () => (at.llm.chats.at(-1)!.json!.messages as Message[]).map(({ role }) => role).join(" ");
  const lastJson = (output: string) => JSON.parse(output.trimEnd().split("\n").at(-1)!);
  /** Runs a script next to the packages that it imports. */
  async function runScript(program: string, args: string[], script: string) {
    const copy = `${INSTALLED}/npm/${script}`;
    await Deno.copyFile(`${TOOLS}clients/${script}`, copy);
    return lastJson(await run(program, [...args, copy, base(), at.token], { cwd: `${INSTALLED}/npm` }));
  }

  async function runCodex(address: string, more: string[], options: { mayFail?: boolean } = {}) {
    for (const folder of ["codex", "work"]) await Deno.mkdir(`${home}/${folder}`, { recursive: true });
    const provider = `{name="Parlor",base_url="${address}",wire_api="responses",env_key="MY_TOKEN",` +
      "request_max_retries=0,stream_max_retries=0}";
    const output = await run(`${INSTALLED}/npm/node_modules/.bin/codex`, [
      ...["exec", "--json", "--skip-git-repo-check", "-C", `${home}/work`, "-m", "default"],
      ...["-c", "model_provider=parlor", "-c", `model_providers.parlor=${provider}`],
      ...["--dangerously-bypass-approvals-and-sandbox", ...more],
    ], { ...options, env: { CODEX_HOME: `${home}/codex`, MY_TOKEN: at.token } });
    const events = output.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
    const items = events.flatMap(({ type, item }) => type === "item.completed" ? [item] : []);
    return { items, end: events.at(-1) };
  }

  test("Codex CLI runs a command, passes its output on, and resumes", async () => {
    const first = await runCodex(base(), ["How is the weather?"]);
    expect(first.items).toContainEqual(
      expect.objectContaining({ type: "command_execution", aggregated_output: "sunny\n", exit_code: 0 }),
    );
    expect(first.items.at(-1)).toMatchObject({ type: "agent_message", text: "Reply to tool" });
    expect(first.end).toMatchObject({ type: "turn.completed", usage: { input_tokens: expect.any(Number) } });
    expect(JSON.stringify(at.llm.chats.at(-1)!.json!.messages)).toContain("sunny");
    const second = await runCodex(base(), ["resume", "--last", "Again"]);
    expect(second.items.at(-1)).toMatchObject({ type: "agent_message", text: "Reply to user" });
    expect(lastRoles()).toMatch(/^system user.* assistant tool assistant user$/);
  });

  test("the Vercel AI SDK runs a tool and refers to stored items, or repeats them", async () => {
    const seen = await runScript(Deno.execPath(), ["run", "-A", "--node-modules-dir=manual"], "ai_sdk_client.mjs");
    const expected = {
      first: "Reply to tool",
      reasoning: "I need a tool.",
      results: ["Rain in Oslo"],
      streamed: "Reply to user",
      tokens: expect.any(Number),
    };
    expect(seen).toEqual({ undefined: expected, false: expected });
    expect(lastRoles()).toBe("user assistant tool assistant user");
  });

  test("OpenAI's agents and client for Node continue with the whole history and with a previous response", async () => {
    expect(await runScript("node", [], "agents_client.mjs")).toEqual({
      first: "Reply to tool",
      history: "Reply to user",
      streamed: "Reply to tool",
      openai: ["Reply to user", "Reply to user"],
      model: "connection:double/fake-model",
    });
  });

  test.skipIf(PYTHON === undefined)("OpenAI's client for Python runs a tool and goes on, stored or not", async () => {
    const output = await run(`${PYTHON}/venv/bin/python`, [`${TOOLS}openai_responses.py`, base(), at.token]);
    expect(lastJson(output)).toEqual({
      call: "weather",
      first: "Reply to tool",
      tokens: expect.any(Number),
      second: "Reply to user",
      events: ["response.created", "response.completed"],
      unstored: "Reply to tool",
      read: "Reply to tool",
      deleted: 404,
    });
    expect(JSON.stringify(at.llm.chats.at(-1)!.json!.messages)).toContain("Rain in Oslo");
  });

  test("llm streams or not, continues, and runs a tool", async () => {
    const env = { LLM_USER_PATH: `${home}/llm` };
    await Deno.mkdir(env.LLM_USER_PATH);
    const model = [
      "- model_id: parlor",
      "  model_name: default",
      `  api_base: ${base()}`,
      "  api_key_name: parlor",
      "  supports_tools: true",
    ];
    await Deno.writeTextFile(`${env.LLM_USER_PATH}/extra-openai-models.yaml`, model.join("\n"));
    await Deno.writeTextFile(`${env.LLM_USER_PATH}/keys.json`, JSON.stringify({ parlor: at.token }));
    const llm = (...args: string[]) => run(`${INSTALLED}/llm/bin/llm`, args, { env });
    expect(await llm("-m", "parlor", "Hello")).toBe("Reply to user\n");
    expect(await llm("-m", "parlor", "--no-stream", "Hello")).toBe("Reply to user\n");
    expect(await llm("-c", "Again")).toBe("Reply to user\n");
    expect(lastRoles()).toBe("user assistant user");
    const code = 'def weather(city: str) -> str:\n    "Weather"\n    return "Rain in " + city';
    expect(await llm("-m", "parlor", "--functions", code, "Weather in Oslo?")).toBe("Reply to tool\n");
    expect(JSON.stringify(at.llm.chats.at(-1)!.json!.messages)).toContain("Rain in Oslo");
  });

  test("LiteLLM runs a tool with responses and with chat completions", async () => {
    const output = await run(`${INSTALLED}/litellm/bin/python`, [`${TOOLS}litellm_client.py`, base(), at.token]);
    expect(lastJson(output)).toEqual({
      responses: "Reply to tool",
      streamed: "response.completed",
      completion: "Reply to tool",
      tokens: expect.any(Number),
    });
  });

  test("aider chats, streaming or not, and restores its history", async () => {
    const cwd = `${home}/aider`;
    await Deno.mkdir(cwd);
    const aider = (...args: string[]) =>
      run(`${INSTALLED}/aider/bin/aider`, [
        ...["--model", "openai/default", "--no-git", "--yes-always", "--no-pretty", "--map-tokens", "0"],
        ...["--no-show-model-warnings", "--no-check-update", "--analytics-disable", "--no-detect-urls"],
        ...args,
      ], { cwd, env: { OPENAI_API_BASE: base(), OPENAI_API_KEY: at.token } });
    expect(await aider("--message", "Hello")).toContain("Reply to user");
    expect(await aider("--restore-chat-history", "--no-stream", "--message", "Again")).toContain("Reply to user");
    const messages = JSON.stringify(at.llm.chats.at(-1)!.json!.messages);
    for (const text of ["Hello", "Reply to user", "Again"]) expect(messages).toContain(text);
  });

  test.skipIf(LLM === undefined)("Codex CLI gets a reply of a real model", async () => {
    await using llama = await startLlama(LLM!, { flags: ["--ctx-size", "8192", "--parallel", "1", "--predict", "24"] });
    await using app = await openTestApp();
    await useModel(app, { url: `${llama.url}/v1` }, { model: undefined });
    await Deno.writeTextFile(`${home}/short.md`, "Be brief.");
    const { end } = await runCodex(`${app.url}/api/v1`, [
      ...["-c", `model_instructions_file=${home}/short.md`, "-c", "web_search=disabled"],
      ...["--disable", "multi_agent", "--disable", "goals", "Hello"],
    ], { mayFail: true });
    // Its text is nonsense of any length; Codex calls a reply at the limit a failure.
    const ends = [
      { type: "turn.completed", usage: expect.objectContaining({ output_tokens: expect.any(Number) }) },
      { type: "turn.failed", error: { message: "Incomplete response returned, reason: max_output_tokens" } },
    ];
    expect(ends).toContainEqual(end);
  });
});
