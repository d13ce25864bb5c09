/** A tool source that tests control. */
import { AppError } from "../../../services/errors.ts";
import type { JsonObject } from "../../../services/json/type_guards.ts";
import type {
  Tool,
  ToolCallOptions,
  ToolOutput,
  ToolPermission,
  ToolSource,
} from "../../../services/tools/tool_registry.ts";

/** The handler of a fake tool. */
export type FakeAnswer = (args: JsonObject, options: ToolCallOptions) => ToolOutput | Promise<ToolOutput>;

/** Creates the result of a tool. */
export function answerText(text: string, fields: Partial<ToolOutput> = {}): ToolOutput {
  return { parts: [{ type: "text", text }], isError: false, truncated: false, ...fields };
}

/** A source with tools of one server. */
export class FakeTools implements ToolSource {
  readonly calls: { name: string; args: JsonObject }[] = [];
  readonly tools = new Map<string, { tool: Tool; answer: FakeAnswer }>();
  unavailable: { serverId: string; serverName: string; reason: string }[] = [];
  readonly #server: string;

  constructor(server = "files") {
    this.#server = server;
  }

  /** Adds a tool, or changes it. */
  set(name: string, answer: FakeAnswer, fields: Partial<Tool> = {}): this {
    const tool: Tool = {
      serverId: this.#server,
      serverName: this.#server,
      name,
      description: `Does ${name}`,
      inputSchema: { type: "object", properties: { q: { type: "string" } } },
      hints: { readOnly: true },
      permission: "ask",
      fingerprint: "f1",
      ...fields,
    };
    this.tools.set(name, { tool, answer });
    return this;
  }

  listTools() {
    return Promise.resolve({ tools: [...this.tools.values()].map(({ tool }) => tool), unavailable: this.unavailable });
  }

  findTool(serverId: string, name: string) {
    return Promise.resolve(serverId === this.#server ? this.tools.get(name)?.tool : undefined);
  }

  async callTool({ name }: Tool, args: JsonObject, options: ToolCallOptions): Promise<ToolOutput> {
    this.calls.push({ name, args });
    const found = this.tools.get(name);
    if (found === undefined) throw new AppError("not_found", "gone");
    return await found.answer(args, options);
  }

  setPermission({ name }: Tool, permission: ToolPermission): Promise<void> {
    this.tools.get(name)!.tool.permission = permission;
    return Promise.resolve();
  }
}
