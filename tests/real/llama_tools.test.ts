/** A real llama.cpp server whose template has tools: its model calls one, and Parlor runs the call. */
import { expect, test } from "vitest";
import { framesOf } from "../helpers/app/chat_client.ts";
import { startChildServer } from "../helpers/app/child_server.ts";
import { openFakeMcpHttp } from "../helpers/fakes/fake_mcp_http.ts";
import { startLlama } from "./helpers/llama_server.ts";
import { realPart } from "./helpers/real_part.ts";

const INSTALLED = realPart("REAL_LLM_DIR", "llm.sh");
/** Time limit for a busy machine. */
const SLOW_MS = 600_000;
/**
 * The small model wasn't trained on tools, so the server's grammar has to make it write a call. With `tool_choice: "required"`,
 * most formats of llama.cpp allow any text before the call, and this model never comes to an end of it. The format of Cohere 2
 * (common/parsers/cohere2moe.cpp), which llama-server recognizes by these marks, allows nothing but the call once the
 * template has closed the thinking. After a result, the template opens a text.
 */
const TEMPLATE = `{{ bos_token }}{% if tools %}To call a tool, write:
<|START_ACTION|>[{"tool_name": "name", "parameters": {}}]<|END_ACTION|>
The tools:
{% for tool in tools %}{{ tool.function.name }}: {{ tool.function.parameters | tojson }}
{% endfor %}{% endif %}{% for message in messages -%}
{% if message.tool_calls -%}
<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|><|END_THINKING|><|START_ACTION|>[{"tool_name": "{{
message.tool_calls[0].function.name }}", "parameters": {{ message.tool_calls[0].function.arguments | tojson
}}}]<|END_ACTION|><|END_OF_TURN_TOKEN|>
{% elif message.role == "tool" -%}
<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|><|START_TOOL_RESULT|>{{ message.content }}<|END_TOOL_RESULT|><|END_OF_TURN_TOKEN|>
{% else -%}
<|START_OF_TURN_TOKEN|>{{ message.role }}: <|START_TEXT|>{{ message.content }}<|END_TEXT|><|END_OF_TURN_TOKEN|>
{% endif %}{% endfor %}{% if add_generation_prompt -%}
<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|><|END_THINKING|>
{%- if not tools or messages[-1].role == "tool" %}<|START_TEXT|>{% endif %}{% endif %}`;

interface Call {
  id: string;
  state: string;
  tool_name: string;
  arguments: string;
}
interface Message {
  role: string;
  content: string;
  status?: string;
  tool_calls?: { state: string }[];
}

test.skipIf(INSTALLED === undefined)(
  "a real model calls a tool, the owner allows the call, and the model gets the result",
  { timeout: SLOW_MS },
  async () => {
    const folder = await Deno.makeTempDir({ prefix: "parlor-real-" });
    const template = `${folder}/template.jinja`;
    await Deno.writeTextFile(template, TEMPLATE);
    try {
      await using llama = await startLlama(INSTALLED!, { flags: ["--jinja", "--chat-template-file", template] });
      await using numbers = openFakeMcpHttp({ isAdder: true });
      await using parlor = await startChildServer({ dataDir: `${folder}/data` });
      const connection = { id: "llama", name: "llama.cpp", kind: "openai", base_url: llama.url };
      await parlor.json("PUT", "/api/connections", connection);
      await parlor.json("POST", "/api/connections/llama/activate");
      await parlor.json("PUT", "/api/tools/servers/numbers", { transport: "http", url: numbers.url });
      expect(await parlor.json("POST", "/api/tools/servers/numbers/test")).toMatchObject({ state: "ready" });

      const response = await parlor.request("POST", "/api/chat", {
        conversation_id: "c1",
        user_message_id: "u1",
        assistant_message_id: "a1",
        messages: [{ role: "user", content: "How much is 2 + 3?" }],
        tool_choice: "required",
        temperature: 0,
        max_tokens: 160,
        stop: ["<|END_TEXT|>", "<|END_OF_TURN_TOKEN|>"],
      });
      const calls: Call[] = [];
      let last = "";
      for await (const { event, data } of framesOf(response)) {
        last = data;
        if (event !== "tool_call") continue;
        const call: Call = JSON.parse(data);
        calls.push(call);
        if (call.state !== "pending") continue;
        await parlor.json("POST", `/api/chat/replies/a1/tool_calls/${call.id}`, { decision: "allow" });
      }
      expect(last).toBe("[DONE]");
      expect(calls).toMatchObject([
        { tool_name: "add", state: "pending" },
        { state: "running" },
        { state: "done" },
      ]);
      const { a, b } = JSON.parse(calls[0]!.arguments);
      const { messages } = await parlor.json<{ messages: Message[] }>("GET", "/api/conversations/c1");
      expect(messages).toMatchObject([
        { role: "user" },
        { role: "assistant", tool_calls: [{ state: "done" }] },
        { role: "tool", content: String(a + b) },
        { role: "assistant", status: "complete", content: expect.stringMatching(/\S/) },
      ]);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
);
