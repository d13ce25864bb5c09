/** What a flow of the page gets. */
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { useModel } from "../../helpers/app/chat_client.ts";
import { type Engine, poll, type Tab } from "../helpers/engines/engine.ts";
import { freePort } from "../helpers/free_port.ts";

/** A server with a model that answers step by step, and a tab. */
export interface Stage {
  app: TestApp;
  llm: FakeLlm;
  engine: Engine;
  tab: Tab;
}

/** A flow. It throws where the page does something else than it says. */
export type Flow = (stage: Stage) => Promise<void>;

/** Opens a server that is set up, and a tab, for all flows of one engine. */
export async function openStage(engine: Engine): Promise<Stage & AsyncDisposable> {
  const llm = await openFakeLlm({ switches: { manual: "on" } });
  // A page finds a server that was away under the same address.
  const app = await openTestApp({ port: freePort() });
  await useModel(app, llm);
  await app.patch("/api/settings", { display_name: "Ann", auto_title: false, memory_asked: true });
  const tab = await engine.newTab();
  return {
    ...{ app, llm, engine, tab },
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await llm[Symbol.asyncDispose]();
    },
  };
}

/** Stores a chat. */
export async function store(app: TestApp, id: string, contents: readonly string[]): Promise<void> {
  const messages = contents.map((content, n) => ({
    id: `${id}-${n}`,
    role: n % 2 === 0 ? "user" : "assistant",
    content,
  }));
  const response = await app.put(`/api/conversations/${id}`, { title: `Chat ${id}`, messages });
  if (!response.ok) throw new Error(await response.text());
}

/** Waits until the server has the draft of a chat. */
export async function untilDraft(app: TestApp, id: string, text: string): Promise<void> {
  const read = async () => (await (await app.get(`/api/conversations/${id}?view=head`)).json()).draft;
  await poll(read, (draft) => draft === text);
}
