/** A page whose server is killed and started again while a reply is written. */
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { type ChildServer, connectModel, startChildServer } from "../../helpers/app/child_server.ts";
import { PATIENCE_MS } from "../../helpers/app/patience.ts";
import { until } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import type { StoredConversation } from "../../helpers/app/stored_chat.ts";
import { PHONE, sendMessage } from "../../helpers/browser/ui_page.ts";
import { freePort } from "../../real/helpers/free_port.ts";

let llm: FakeLlm;
let browser: Browser;
let server: ChildServer;
let dataDir: string;
let port: string;

const start = () => startChildServer({ dataDir, port, args: ["--discover-hosts", "127.0.0.1:9"] });

beforeAll(async () => {
  await builtUi();
  llm = await openFakeLlm({ personality: "llama.cpp", switches: { manual: "on" } });
  browser = await chromium.launch({
    executablePath: Deno.env.get("CHROMIUM") ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  dataDir = await Deno.makeTempDir({ prefix: "parlor-restarted-" });
  port = String(freePort());
  server = await start();
  await connectModel(server, llm.url);
  await server.json("POST", "/api/setup/complete");
});
afterAll(async () => {
  await browser.close();
  await server.kill();
  await llm[Symbol.asyncDispose]();
  await Deno.remove(dataDir, { recursive: true });
});

/** Opens a page at phone size and asks; the reply begins with "The sea". */
async function askOnPage(id: string) {
  await server.json("PUT", `/api/conversations/${id}`, { title: "Water", messages: [] });
  const context = await browser.newContext({ ...PHONE, locale: "en-US" });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  await page.goto(`http://localhost:${port}/c/${id}`);
  await sendMessage(page, "Tell me about the sea");
  const call = await llm.nextCall();
  await call.emit("The sea");
  await messageOf(page).getByText("The sea", { exact: true }).waitFor();
  return { page, call, [Symbol.asyncDispose]: () => context.close() };
}

const readReply = async (id: string) =>
  (await server.json<StoredConversation>("GET", `/api/conversations/${id}`)).messages.at(-1)!;
/** The reply in the chat: what was said is also read to screen readers. */
const messageOf = (page: Page) => page.locator(".message").last();

test.for([["SIGKILL", "k1"], ["SIGTERM", "k2"]] as const)(
  "a reply goes on in the open page after %s of the server",
  async ([signal, id]) => {
    await using asked = await askOnPage(id);
    const { page, call } = asked;
    await server.kill(signal);
    await call.emit(" is blue");
    server = await start();
    await messageOf(page).getByText("The sea is blue").waitFor();
    await call.emit(" and wide.");
    await call.finish();
    await messageOf(page).getByText("The sea is blue and wide.").waitFor();
    await until(async () => (await readReply(id)).status === "complete", "the reply is complete");
    await expect.poll(() => page.getByRole("button", { name: "Stop" }).count()).toBe(0);
    await expect.poll(() => messageOf(page).innerText()).not.toMatch(/stopped while|interrupted/i);
    expect((await readReply(id)).content).toBe("The sea is blue and wide.");
  },
);

test("Stop that is pressed while the server is away stops the reply and the model when it's back", async () => {
  await using asked = await askOnPage("s1");
  const { page } = asked;
  await server.kill();
  await page.locator(".composer").getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopping a reply").waitFor();
  server = await start();
  await until(async () => (await readReply("s1")).status === "stopped", "the reply is stopped");
  await expect.poll(() => page.getByText("Stopping a reply").count()).toBe(0);
  await expect.poll(() => page.getByRole("button", { name: "Stop" }).count()).toBe(0);
  expect((await readReply("s1")).content).toBe("The sea");
  await expect.poll(() => llm.streams.byId.size).toBe(0);
});
