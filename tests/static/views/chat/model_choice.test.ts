import type { Connection, Message } from "../../../../static/src/api/types.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { FakeApi } from "../../../helpers/fakes/api/fake_api.ts";
import { eventually, openUiBench, type UiBench } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const TIME = "2026-01-02T03:04:05Z";
const DESK: Connection = {
  id: "desk",
  name: "Desk",
  kind: "openai",
  base_url: "http://127.0.0.1:8080/v1",
  has_key: false,
  active: true,
  created_at: TIME,
  updated_at: TIME,
  header_names: [],
  server: { detected: "llama.cpp" },
  dialect: {
    name: "llama.cpp",
    title: "llama.cpp",
    output_limit: "max_tokens",
    samplers: ["temperature", "top_k", "repetition_penalty", "stop", "dry_multiplier"],
    thinking: { switch: true, efforts: ["none", "low", "high"] },
    trims_context: "client",
    continues: true,
    images: true,
    documents: false,
    tools: true,
  },
  refused: [{ model: "first", field: "top_k", status: 400, reason: "no top_k here", at: TIME, until: TIME }],
  resolved_model: "first",
  last_call: { ok: true, at: TIME },
};
const CLOUD: Connection = {
  ...DESK,
  id: "cloud",
  name: "Cloud",
  active: false,
  base_url: "https://llm.example/v1",
  model: "big",
  resolved_model: "big",
  refused: [],
};
const STORY: Partial<Message>[] = [
  { role: "user", content: "Tell me a story" },
  { role: "assistant", content: "Once upon a time.", model: "first" },
];

function prepare(api: FakeApi): void {
  api.connections = [DESK, CLOUD];
  api.testResult = { ...api.testResult, models: ["first", "second"] };
  api.addConversation("c1", "Chat", STORY);
}

test("names the model that answers, and its light follows what a call found", async () => {
  await using ui = await bench.open("/c/c1", { prepare });
  const { page, api } = ui;
  await page.getByRole("button", { name: "Model: first · Desk · Ready" }).waitFor();
  const error = { code: "upstream_error", message: "Out of credit", kind: "credit" };
  api.connections = [{ ...DESK, last_call: { ok: false, at: "2026-01-02T04:00:00Z", error } }, CLOUD];
  api.publish("connection", "desk");
  await page.getByRole("button", { name: "Model: first · Desk · Access denied" }).waitFor();
  await page.getByRole("link", { name: "Desk Access denied" }).waitFor();
});

test("a change before the stream of events begins isn't missed", async () => {
  await using ui = await bench.open("/c/c1", {
    prepare: (api) => {
      prepare(api);
      api.refuse("GET /api/events", { status: 503, code: "starting", message: "Starting" });
    },
  });
  const { page, api } = ui;
  await page.getByRole("button", { name: "Model: first · Desk · Ready" }).waitFor();
  await eventually(() => api.seen("GET", "/api/events").length, (count) => count > 0);
  const error = { code: "upstream_error", message: "Out of credit", kind: "credit" };
  api.connections = [{ ...DESK, last_call: { ok: false, at: "2026-01-02T04:00:00Z", error } }, CLOUD];
  api.allow("GET /api/events");
  await page.getByRole("button", { name: "Model: first · Desk · Access denied" }).waitFor();
});

test("tries a reply with another model of another connection, and shows which model wrote each version", async () => {
  await using ui = await bench.open("/c/c1", { prepare });
  const { page, api } = ui;
  await page.locator(".reply").getByRole("button", { name: "Message actions" }).click();
  await page.getByRole("menuitem", { name: "Try with another model" }).click();
  const picker = page.getByRole("dialog", { name: "Try with another model" });
  await picker.getByLabel("Connection").selectOption("Cloud");
  await picker.getByRole("button", { name: "second", exact: true }).click();
  await page.locator(".reply").getByText("2/2").waitFor();
  await expect.poll(() => api.seen("POST", "/api/chat")[0]!.body).toMatchObject({
    action: "regenerate",
    connection_id: "cloud",
    model: "second",
  });
  // Only this version: the chat goes on with its own model.
  await page.getByRole("button", { name: /^Model: first/ }).waitFor();
  await expect.poll(() => api.conversations.get("c1")!.connection_id).toBeUndefined();
});

test("lists favorites and recent models of all connections first, also after a reload", async () => {
  await using ui = await bench.open("/c/c1", { prepare });
  const { page, api } = ui;
  const open = () => page.getByRole("button", { name: /^Model:/ }).click();
  await open();
  const picker = page.getByRole("dialog", { name: "Model for this chat" });
  await picker.getByLabel("Connection").selectOption("Cloud");
  await picker.getByRole("button", { name: "Add second to favorites" }).click();
  await picker.getByRole("button", { name: "first", exact: true }).click();
  await page.getByRole("button", { name: "Model: first · Cloud · Ready" }).waitFor();
  await page.reload();
  await open();
  await picker.getByRole("list", { name: "Recent" }).getByRole("button", { name: "first Cloud" }).waitFor();
  await picker.getByRole("list", { name: "Favorites" }).getByRole("button", { name: "second Cloud" }).click();
  await eventually(() => api.conversations.get("c1")!, ({ model }) => model === "second");
  await expect.poll(() => api.conversations.get("c1")!.connection_id).toBe("cloud");
});

test("offers only the samplers of the server, and says why the model refused one", async () => {
  await using ui = await bench.open("/c/c1", { prepare });
  const { page } = ui;
  await page.getByRole("button", { name: "Chat options" }).click();
  await page.getByLabel("Temperature").waitFor();
  await expect.poll(() => page.getByLabel("Top K").isDisabled()).toBe(true);
  await page.getByText("Refused by this model: no top_k here").waitFor();
  await expect.poll(() => page.getByLabel("Top P").count()).toBe(0);
  await expect.poll(() => page.getByLabel("Max reply tokens").isEnabled()).toBe(true);
  await page.getByText("More samplers").click();
  await page.getByLabel("dry_multiplier").fill("0.8");
  await eventually(() => ui.api.conversations.get("c1")!.params, (params) => params?.dry_multiplier === 0.8);
});

test("sets the thinking in the composer and in the options, and keeps other settings that are being typed", async () => {
  await using ui = await bench.open("/c/c1", { prepare });
  const { page, api } = ui;
  await page.getByRole("button", { name: "Chat options" }).click();
  await page.getByLabel("Temperature").fill("0.5");
  await page.getByRole("button", { name: "Thinking: Default" }).click();
  await page.getByRole("menuitemradio", { name: "High" }).click();
  await page.getByRole("button", { name: "Thinking: High" }).waitFor();
  const options = page.getByRole("complementary", { name: "Chat options" });
  await expect.poll(() => options.getByLabel("Thinking").inputValue()).toBe("high");
  const params = await eventually(
    () => api.conversations.get("c1")!.params,
    (params) => params?.temperature === 0.5 && params.reasoning_effort !== undefined,
  );
  expect(params).toEqual({ temperature: 0.5, reasoning_effort: "high" });
  await options.getByLabel("Thinking").selectOption("Off");
  await page.getByRole("button", { name: "Thinking: Off" }).waitFor();
});

test("a model that can't think has no switch for it", async () => {
  await using ui = await bench.open("/c/c1", {
    prepare: (api) => {
      prepare(api);
      api.connections = [{ ...DESK, dialect: { ...DESK.dialect!, models: { first: { thinking: false } } } }];
    },
  });
  await ui.page.getByRole("button", { name: /^Model: first/ }).waitFor();
  await expect.poll(() => ui.page.getByRole("button", { name: /^Thinking/ }).count()).toBe(0);
});

test("details of a reply name the connection, the limit, and what was left out and why", async () => {
  await using ui = await bench.open("/c/c1", {
    prepare: (api) => {
      prepare(api);
      Object.assign(api.conversations.get("c1")!.messages[1]!, {
        connection_id: "cloud",
        output_limit: 2000,
        left_out: [
          { field: "min_p", status: 422, reason: "Extra inputs are not permitted" },
          { field: "tools: Web", status: 0, reason: "it doesn't answer" },
        ],
        usage: { completion_tokens: 40, completion_tokens_details: { reasoning_tokens: 30 } },
      });
    },
  });
  const { page } = ui;
  await page.locator(".reply").getByRole("button", { name: "Message actions" }).click();
  await page.getByRole("menuitem", { name: "Details" }).click();
  const details = page.getByRole("dialog", { name: "Details" });
  // The connections may be read after the chat.
  await expect.poll(async () => (await details.locator(".facts").innerText()).split("\n")).toEqual(
    expect.arrayContaining(["Cloud", "2,000", "30"]),
  );
  await details.getByText("min_p (422): Extra inputs are not permitted").waitFor();
  const offered = details.getByRole("region", { name: "Not offered to the model" });
  await offered.getByText("tools: Web: it doesn't answer", { exact: true }).waitFor();
});

test("says that the model is reloaded with a larger context while the reply waits", async () => {
  await using ui = await bench.open("/c/c1", { prepare });
  const reply = ui.api.startReply("c1", "r1");
  await eventually(() => ui.api.seen("GET", "/api/chat/replies/r1").length, (count) => count > 0);
  reply.notify({ code: "model_reload", message: "Reloading", context_size: 16384 });
  await ui.page.getByText("Reloading the model with a 16k context").waitFor();
  reply.say("Done.");
  await ui.page.getByText("Reloading the model").waitFor({ state: "detached" });
});

test("a response from before a change doesn't undo it, and changes are sent one after another", async () => {
  await using ui = await bench.open("/c/c1", { prepare });
  const { page, api } = ui;
  await page.getByRole("button", { name: "Thinking: Default" }).waitFor();
  const isRead = Promise.withResolvers<void>();
  const [reading, changing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await page.route("**/api/conversations/c1?*view=recent*", async (route) => {
    const response = await route.fetch();
    isRead.resolve();
    await reading.promise;
    await route.fulfill({ response });
  }, { times: 1 });
  await page.route("**/api/conversations/c1", async (route) => {
    if (route.request().method() === "PATCH") await changing.promise;
    await route.continue();
  });
  const conversation = api.conversations.get("c1")!;
  conversation.title = "Renamed elsewhere";
  api.publish("conversation", "c1", ++conversation.revision);
  await isRead.promise;
  const choose = async (name: string) => {
    await page.getByRole("button", { name: /^Thinking:/ }).click();
    await page.getByRole("menuitemradio", { name }).click();
    await page.getByRole("button", { name: `Thinking: ${name}` }).waitFor();
  };
  await choose("High");
  reading.resolve();
  await page.getByRole("main").getByText("Renamed elsewhere").waitFor();
  await page.getByRole("button", { name: "Thinking: High" }).waitFor();
  const changes: unknown[] = [];
  page.on("request", (request) => request.method() === "PATCH" && changes.push(request.postDataJSON()));
  await choose("Low");
  await choose("Off");
  expect(changes).toEqual([]);
  changing.resolve();
  await eventually(() => conversation.params, (params) => params?.reasoning_effort === "none");
  expect(changes).toEqual([{ params: { reasoning_effort: "low" } }, { params: { reasoning_effort: "none" } }]);
  await page.getByRole("button", { name: "Thinking: Off" }).waitFor();
});

test("lists the models again if a call to the model ends while the picker is open", async () => {
  await using ui = await bench.open("/c/c1", { prepare });
  const { page, api } = ui;
  await page.getByRole("button", { name: /^Model: first/ }).click();
  const second = page.getByRole("dialog").getByRole("button", { name: "second", exact: true });
  await second.waitFor();
  api.connections = [{ ...DESK, last_call: { ok: true, at: "2026-01-02T05:00:00Z" } }, CLOUD];
  api.publish("connection", "desk");
  await eventually(() => api.seen("POST", "/api/connections/test").length, (count) => count === 2);
  await second.waitFor();
});
