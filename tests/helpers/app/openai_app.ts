/** A server with access control and a model server, and OpenAI's client with a token. */
import OpenAI from "openai";
import { type FakeLlm, type FakeLlmOptions, openFakeLlm } from "../fakes/llm/fake_llm.ts";
import { useModel } from "./chat_client.ts";
import { enrol } from "./enrolled.ts";
import { openTestApp, type TestApp } from "./test_app.ts";

/** The server, the fake model server, and the clients. */
export interface OpenAiApp extends AsyncDisposable {
  readonly app: TestApp;
  readonly llm: FakeLlm;
  /** A token limited to the OpenAI-compatible API. */
  readonly token: string;
  readonly tokenId: string;
  /** A token with full access. */
  readonly ownerToken: string;
  /** Creates a client without retries, which would hide the server's response. */
  client(token?: string): OpenAI;
  /** Sends a request with the token. */
  send(method: string, path: string, body?: Record<string, unknown>, token?: string): Promise<Response>;
}

/** Opens the server. The loopback bypass is off and a passkey exists, so requests need a token or a session. */
export async function openOpenAiApp(options: FakeLlmOptions = {}): Promise<OpenAiApp> {
  const app = await openTestApp({ config: { loopbackAuthBypass: false } });
  const llm = await openFakeLlm(options);
  await useModel(app, llm);
  // From here on nobody passes without credentials.
  await enrol(app, "localhost");
  const owner = await app.services.auth.mintToken("owner");
  const { record, token } = await app.services.auth.mintToken("test", "openai", { write: true });
  const at: OpenAiApp = {
    app,
    llm,
    token,
    tokenId: record.id,
    ownerToken: owner.token,
    client: (key = token) => new OpenAI({ baseURL: `${app.url}/api/v1`, apiKey: key, maxRetries: 0 }),
    send: (method, path, body, key = token) =>
      app.request(method, path, body, { headers: { Authorization: `Bearer ${key}` } }),
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await llm.close();
    },
  };
  return at;
}

/** Saves a character with a lorebook entry that the word "harbor" activates. */
export async function saveMira({ send, ownerToken }: OpenAiApp): Promise<void> {
  const data = {
    name: "Mira",
    description: "Mira keeps the lighthouse of {{user}}.",
    personality: "calm",
    scenario: "",
    first_mes: "Hello.",
    mes_example: "",
    creator_notes: "",
    system_prompt: "Speak as {{char}}.",
    post_history_instructions: "",
    alternate_greetings: [],
    tags: [],
    creator: "",
    character_version: "",
    extensions: {},
    character_book: {
      extensions: {},
      entries: [{
        keys: ["harbor"],
        content: "The harbor freezes in winter.",
        extensions: {},
        enabled: true,
        insertion_order: 1,
        use_regex: false,
      }],
    },
  };
  const card = { spec: "chara_card_v2", spec_version: "2.0", data };
  const saved = await send("PUT", "/api/characters/mira", card, ownerToken);
  if (!saved.ok) throw new Error(`The card was refused: ${await saved.text()}`);
}
