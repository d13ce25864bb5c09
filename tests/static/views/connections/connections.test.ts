import type { Connection, DetectedServer } from "../../../../static/src/api/types.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { holdToasts } from "../../../helpers/browser/browser.ts";
import { demoConnection } from "../../../helpers/fakes/api/fake_api.ts";
import { eventually, openUiBench, type UiBench } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const LLAMA: DetectedServer = {
  base_url: "http://127.0.0.1:8080/v1",
  kind: "openai",
  software: "llama.cpp",
  models: ["gemma"],
};
const SAVED: Connection = {
  id: "mine",
  name: "My server",
  kind: "openai",
  base_url: "https://llm.example/v1",
  model: "big",
  has_key: true,
  header_names: [],
  server: {},
  refused: [],
  active: false,
  created_at: "2026-01-02T03:04:05Z",
  updated_at: "2026-01-02T03:04:05Z",
};

test("an empty chat shows that there is only the demo, and one click finds, adds and activates a model", async () => {
  await using ui = await bench.open("/new", {
    prepare: (api) => {
      api.isSetupCompleted = false;
      api.found = [LLAMA];
    },
  });
  await ui.page.getByRole("heading", { name: "Connect a language model" }).waitFor();
  await ui.page.getByRole("button", { name: "Find a model" }).click();
  await ui.page.getByText("http://127.0.0.1:8080/v1 · gemma").waitFor();
  await ui.page.getByRole("button", { name: /^Add and use/ }).click();
  await ui.page.getByText("Now using “llama.cpp”").waitFor();
  await expect.poll(() => ui.api.seen("PUT", "/api/connections")[0]!.body).toEqual({
    name: "llama.cpp",
    kind: "openai",
    base_url: "http://127.0.0.1:8080/v1",
    model: "gemma",
  });
  await expect.poll(() => ui.api.connections.find((each) => each.active)!.name).toBe("llama.cpp");
  await eventually(() => ui.api.isSetupCompleted, (isCompleted) => isCompleted);
  await ui.page.getByRole("heading", { name: "Connect a language model" }).waitFor({ state: "detached" });
});

test("the demo hint never returns after it is dismissed", async () => {
  await using ui = await bench.open("/new", { prepare: (api) => api.isSetupCompleted = false });
  await ui.page.getByRole("button", { name: "Not now" }).click();
  await ui.page.getByRole("heading", { name: "Connect a language model" }).waitFor({ state: "detached" });
  await eventually(() => ui.api.isSetupCompleted, (isCompleted) => isCompleted);
});

test("the note below the composer opens the search, which has started", async () => {
  await using ui = await bench.open("/new", { prepare: (api) => api.found = [LLAMA] });
  await ui.page.getByRole("link", { name: "Find a model" }).click();
  await ui.page.getByText("http://127.0.0.1:8080/v1 · gemma").waitFor();
  expect(new URL(ui.page.url()).pathname).toBe("/settings/connections");
});

test("says what to do after a search without a result, and why one failed", async () => {
  await using ui = await bench.open("/settings/connections");
  await ui.page.getByRole("button", { name: "Find servers" }).click();
  await ui.page.getByText("No servers found").waitFor();
  ui.api.refuse("POST /api/discover", { status: 500, code: "internal", message: "The search broke" });
  await ui.page.getByRole("button", { name: "Find servers" }).click();
  await ui.page.getByText("The search broke").waitFor();
});

test("a found server that asks for a key gets it at once, and is named by what it answers then", async () => {
  await using ui = await bench.open("/settings/connections", {
    prepare: (api) => {
      api.found = [{ ...LLAMA, software: "OpenAI-compatible", models: [], needs_key: true }];
      api.testResult = {
        reachable: true,
        authorized: false,
        models: [],
        latency_ms: 3,
        advice: "Wrong key, said the test",
      };
    },
  });
  await ui.page.getByRole("button", { name: "Find servers" }).click();
  const add = ui.page.getByRole("button", { name: /^Add and use/ });
  await expect.poll(() => add.isDisabled()).toBe(true);
  await ui.page.getByLabel("API key").fill("wrong");
  await add.click();
  await ui.page.getByRole("alert").getByText("Wrong key, said the test").waitFor();
  expect(ui.api.seen("PUT", "/api/connections")).toEqual([]);
  ui.api.testResult = { reachable: true, authorized: true, models: ["qwen"], latency_ms: 3, software: "vLLM" };
  await ui.page.getByLabel("API key").fill("right");
  await ui.page.getByLabel("API key").press("Enter");
  await ui.page.getByText("Now using “vLLM”").waitFor();
  await expect.poll(() => ui.api.seen("PUT", "/api/connections").map(({ body }) => body)).toEqual([{
    name: "vLLM",
    kind: "openai",
    base_url: LLAMA.base_url,
    api_key: "right",
    model: "qwen",
  }]);
});

test("a found server whose key shows that it only speaks isn't added as a model", async () => {
  await using ui = await bench.open("/settings/connections", {
    prepare: (api) => {
      api.found = [{ ...LLAMA, software: "OpenAI-compatible", models: [], needs_key: true }];
      api.testResult = { reachable: true, authorized: true, models: ["tts-1"], latency_ms: 3, speech: true };
    },
  });
  await ui.page.getByRole("button", { name: "Find servers" }).click();
  await ui.page.getByLabel("API key").fill("k");
  await ui.page.getByRole("button", { name: /^Add and use/ }).click();
  await ui.page.getByRole("alert").getByText("This server only speaks or transcribes").waitFor();
  expect(ui.api.seen("PUT", "/api/connections")).toEqual([]);
});

test("servers for speech, transcription and images that the search finds lead to their own pages", async () => {
  await using ui = await bench.open("/settings/connections", {
    prepare: (api) => {
      api.found = [LLAMA];
      api.foundElsewhere = {
        speech: [{ base_url: "http://127.0.0.1:8880/v1", software: "Kokoro-FastAPI", models: ["kokoro"], voices: 2 }],
        images: [{ base_url: "http://127.0.0.1:8188", kind: "comfyui" }],
      };
    },
  });
  await ui.page.getByRole("button", { name: "Find servers" }).click();
  await ui.page.getByText("Speech · http://127.0.0.1:8880/v1").waitFor();
  const links = ui.page.getByRole("link", { name: /^Set up/ });
  await expect.poll(() => links.evaluateAll((all) => all.map((link) => link.getAttribute("href"))))
    .toEqual(["/settings/voice", "/settings/images"]);
});

test("activates a detected server that is saved already, without saving it twice", async () => {
  await using ui = await bench.open("/settings/connections", {
    prepare: (api) => {
      api.found = [LLAMA];
      api.connections.push({ ...SAVED, base_url: "http://127.0.0.1:8080/v1/" });
    },
  });
  await ui.page.getByRole("button", { name: "Find servers" }).click();
  await ui.page.getByRole("button", { name: /^Use: llama.cpp/ }).click();
  await ui.page.getByText("Now using “My server”").waitFor();
  await expect.poll(() => ui.api.seen("PUT", "/api/connections")).toEqual([]);
});

test("tests a new connection before saving, and sends its key only once", async () => {
  await using ui = await bench.open("/settings/connections/new", {
    prepare: (api) =>
      api.testResult = { reachable: true, authorized: true, models: ["a", "b"], context_size: 8192, latency_ms: 12 },
  });
  await ui.page.getByLabel("URL").fill("https://llm.example/v1");
  await ui.page.getByLabel("API key").fill("sk-very-secret");
  await ui.page.getByRole("button", { name: "Test" }).click();
  await ui.page.getByText("The connection works").waitFor();
  await ui.page.getByText("2 models available", { exact: true }).waitFor();
  await ui.page.getByText("Context size: 8,192 tokens").waitFor();
  await expect.poll(() =>
    ui.page.locator("#model-list option").evaluateAll((all) => all.map((o) => o.getAttribute("value")))
  )
    .toEqual(["a", "b"]);
  await ui.page.getByLabel("Model", { exact: true }).fill("b");
  await ui.page.getByRole("button", { name: "Save and use" }).click();
  await ui.page.getByText("Now using “llm.example”").waitFor();
  await expect.poll(() => ui.api.seen("PUT", "/api/connections")[0]!.body).toMatchObject({
    api_key: "sk-very-secret",
    model: "b",
  });
  await ui.page.getByRole("link", { name: "Edit" }).click();
  await ui.page.getByText("A key is saved. Leave this empty to use it.").waitFor();
  await expect.poll(() => ui.page.getByLabel("API key").inputValue()).toBe("");
  expect(await ui.page.content()).not.toContain("sk-very-secret");
});

test("searches for servers at once and lists them first; one click adds one", async () => {
  await using ui = await bench.open("/settings/connections/new", { prepare: (api) => api.found = [LLAMA] });
  await ui.page.getByText("http://127.0.0.1:8080/v1 · gemma").waitFor();
  await ui.page.getByRole("button", { name: /^Add and use/ }).click();
  await ui.page.waitForURL(`${ui.api.origin}/settings/connections`);
  await expect.poll(() => ui.api.connections.find((each) => each.active)!.name).toBe("llama.cpp");
});

test("suggestions fill the form, keep a custom name, and show which service needs a key", async () => {
  await using ui = await bench.open("/settings/connections/new");
  const { page } = ui;
  const chips = page.getByRole("group", { name: "Suggestions" });
  await chips.waitFor();
  await expect.poll(() => chips.getByRole("button").allInnerTexts()).toEqual([
    "Ollama",
    "LM Studio",
    "llama.cpp",
    "KoboldCpp",
    "vLLM",
    "OpenRouter",
    "OpenAI",
    "Anthropic",
  ]);
  await chips.getByRole("button", { name: "Ollama" }).click();
  await expect.poll(() => page.getByLabel("URL").inputValue()).toBe("http://127.0.0.1:11434");
  await expect.poll(() => page.getByLabel("Type").inputValue()).toBe("ollama");
  await expect.poll(() => page.getByLabel("Name").inputValue()).toBe("Ollama");
  await chips.getByRole("button", { name: "Anthropic" }).click();
  await expect.poll(() => page.getByLabel("Type").inputValue()).toBe("anthropic");
  await expect.poll(() => page.getByLabel("Name").inputValue()).toBe("Anthropic");
  await page.getByText("This service requires an API key.").waitFor();
  await expect.poll(() => chips.getByRole("button", { name: "Anthropic" }).getAttribute("aria-pressed")).toBe("true");
  await page.getByLabel("Name").fill("Mine");
  await chips.getByRole("button", { name: "OpenAI" }).click();
  await expect.poll(() => page.getByLabel("Name").inputValue()).toBe("Mine");
});

test("warns of a key over plain HTTP to another machine, and trims it", {
  tags: ["U01"],
}, async () => {
  await using ui = await bench.open("/settings/connections/new");
  const { page } = ui;
  const warning = page.getByText("This URL isn’t encrypted");
  await page.getByLabel("URL").fill("http://192.168.1.9:8080/v1");
  await expect.poll(() => warning.count()).toBe(0);
  await page.getByLabel("API key").fill("  sk-pasted ");
  await warning.waitFor();
  await page.getByRole("button", { name: "Show key" }).click();
  await expect.poll(() => page.getByLabel("API key").getAttribute("type")).toBe("text");
  await page.getByLabel("URL").fill("http://127.0.0.1:8080/v1");
  await warning.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.waitForURL(`${ui.api.origin}/settings/connections`);
  await expect.poll(() => ui.api.seen("PUT", "/api/connections")[0]!.body).toMatchObject({ api_key: "sk-pasted" });
});

test("shows each connection as untested, ready, refused or unreachable", async () => {
  await using ui = await bench.open("/settings/connections", { prepare: (api) => api.connections.push(SAVED) });
  const { page, api } = ui;
  const card = page.locator(".connection", { hasText: "My server" });
  await card.getByText("Not tested yet").waitFor();
  const testAll = page.getByRole("button", { name: "Test all" });
  await testAll.click();
  await card.getByText("Ready", { exact: true }).waitFor();
  // Requests at the same time arrive in any order.
  const tested = () => api.seen("POST", "/api/connections/test").map(({ body }) => Reflect.get(body as object, "id"));
  await eventually(tested, (ids) => ids.length === 2);
  expect(tested().sort()).toEqual(["demo", "mine"]);
  api.testResult = {
    reachable: true,
    authorized: false,
    models: [],
    latency_ms: 1,
    error: "Wrong key",
    advice: "Enter it again",
  };
  await testAll.click();
  await card.locator(".state-line", { hasText: "Access denied" }).waitFor();
  await card.getByText("Enter it again").waitFor();
  api.testResult = { reachable: false, authorized: false, models: [], latency_ms: 1, error: "Connection refused" };
  await testAll.click();
  await card.locator(".state-line", { hasText: "Unreachable" }).waitFor();
});

test("shows the result and advice of a failed test, and keeps the input", async () => {
  await using ui = await bench.open("/settings/connections/new", {
    prepare: (api) =>
      api.testResult = {
        reachable: false,
        authorized: false,
        models: [],
        latency_ms: 2,
        error: "Can't reach the server",
        advice: "Start the server first",
      },
  });
  await ui.page.getByLabel("URL").fill("http://127.0.0.1:9");
  await ui.page.getByRole("button", { name: "Test" }).click();
  for (
    const text of [
      "The connection doesn’t work",
      "Server unreachable",
      "Can't reach the server",
      "Start the server first",
    ]
  ) {
    await ui.page.getByText(text).waitFor();
  }
  await expect.poll(() => ui.page.getByLabel("URL").inputValue()).toBe("http://127.0.0.1:9");
});

test("a test lists what the server does, what isn't known, and where it differs from others", async () => {
  await using ui = await bench.open("/settings/connections/new", {
    prepare: (api) =>
      api.testResult = {
        ...{ reachable: true, authorized: true, models: ["m"], latency_ms: 2 },
        contract: {
          at: "2026-01-02T03:04:05Z",
          version: "b11434",
          findings: [
            { item: "slots", found: 4 },
            { item: "tools", found: false, expected: true },
            { item: "images", found: true, expected: true },
            { item: "stop", expected: true, reason: "would_load" },
          ],
        },
      },
  });
  await ui.page.getByLabel("URL").fill("http://127.0.0.1:9");
  await ui.page.getByRole("button", { name: "Test" }).click();
  await ui.page.getByText("What this server does (b11434)").waitFor();
  await expect.poll(() => ui.page.locator(".server-contract dl > div").allInnerTexts()).toEqual([
    "Replies at the same time\n4",
    "Takes tools\nno (unlike others of its kind)",
    "Takes images\nyes",
    "Stops at stop sequences\nnot asked: that might load a model",
  ]);
});

test("edits a saved connection without sending its key, which can be removed separately", async () => {
  await using ui = await bench.open("/settings/connections/mine", { prepare: (api) => api.connections.push(SAVED) });
  await ui.page.getByLabel("Name").fill("Renamed");
  await ui.page.getByRole("button", { name: "Save", exact: true }).click();
  await ui.page.getByRole("heading", { name: "Renamed" }).waitFor();
  const body = ui.api.seen("PUT", "/api/connections")[0]!.body as Record<string, unknown>;
  expect(body).toMatchObject({ id: "mine", name: "Renamed" });
  expect("api_key" in body).toBe(false);
  await ui.page.getByRole("link", { name: "Edit" }).click();
  await ui.page.getByRole("button", { name: "Remove saved key" }).click();
  await ui.page.getByRole("button", { name: "Remove saved key" }).waitFor({ state: "detached" });
  await expect.poll(() => ui.api.seen("DELETE", "/api/connections/mine/key")).toHaveLength(1);
});

test(
  "shows that the stored key isn't sent to another origin",
  { tags: ["U01"] },
  async () => {
    await using ui = await bench.open("/settings/connections/mine", { prepare: (api) => api.connections.push(SAVED) });
    const warning = ui.page.getByText("The saved key belongs to another URL");
    await ui.page.getByLabel("URL").fill("https://llm.example/other");
    await expect.poll(() => warning.count()).toBe(0);
    await ui.page.getByLabel("URL").fill("https://llm.example.evil/v1");
    await warning.waitFor();
  },
);

test("doesn't send an invalid form, and shows the error next to the field", async () => {
  await using ui = await bench.open("/settings/connections/new");
  await ui.page.getByLabel("URL").fill("llm example");
  await ui.page.getByLabel("Context size").fill("8k");
  await ui.page.getByRole("button", { name: "Save and use" }).click();
  await ui.page.getByText("Enter an address, such as http://192.168.1.5:8080").waitFor();
  await ui.page.getByText("Enter a whole number of tokens, such as 8192").waitFor();
  await expect.poll(() => ui.page.getByLabel("URL").getAttribute("aria-invalid")).toBe("true");
  // The button is at the end of a long form.
  await expect.poll(() => ui.page.evaluate(() => document.activeElement?.id)).toBe("url");
  await expect.poll(() => ui.api.seen("PUT", "/api/connections")).toEqual([]);
});

test("completes an address without a scheme when its field is left", async () => {
  await using ui = await bench.open("/settings/connections/new");
  const address = ui.page.getByLabel("URL");
  await address.fill("192.168.1.5:8080");
  await address.press("Tab");
  await expect.poll(() => address.inputValue()).toBe("http://192.168.1.5:8080");
  await address.fill("api.example.com/v1");
  await address.press("Tab");
  await expect.poll(() => address.inputValue()).toBe("https://api.example.com/v1");
});

test("keeps the form of a refused save, with an error per field", async () => {
  await using ui = await bench.open("/settings/connections/new", {
    prepare: (api) =>
      api.refuse("PUT /api/connections", {
        status: 403,
        code: "address_not_allowed",
        message: "Address not allowed",
      }),
  });
  await ui.page.getByLabel("URL").fill("http://169.254.169.254/");
  await ui.page.getByRole("button", { name: "Save", exact: true }).click();
  await ui.page.getByRole("alert").getByText("Address not allowed").waitFor();
  await expect.poll(() => ui.page.getByLabel("URL").inputValue()).toBe("http://169.254.169.254/");
});

test("removes the saved key of a form that is invalid", async () => {
  await using ui = await bench.open("/settings/connections/mine", { prepare: (api) => api.connections.push(SAVED) });
  await ui.page.getByLabel("Context size").fill("8k");
  await ui.page.getByRole("button", { name: "Remove saved key" }).click();
  await ui.page.getByRole("button", { name: "Remove saved key" }).waitFor({ state: "detached" });
  await expect.poll(() => ui.page.getByLabel("Context size").inputValue()).toBe("8k");
});

test("activates, tests and deletes connections from the list, and Undo restores one", async () => {
  await using ui = await bench.open("/settings/connections", { prepare: (api) => api.connections.push(SAVED) });
  await ui.page.getByRole("button", { name: "Use: My server" }).click();
  await ui.page.locator(".connection.active", { hasText: "My server" }).getByText("In use").waitFor();
  await ui.page.getByRole("button", { name: "Test: My server" }).click();
  await ui.page.getByText("The connection works").waitFor();
  await expect.poll(() => ui.api.seen("POST", "/api/connections/test")[0]!.body).toMatchObject({ id: "mine" });
  await holdToasts(ui.page);
  await ui.page.getByRole("button", { name: "Delete: Demo" }).click();
  await ui.page.getByRole("heading", { name: "Demo" }).waitFor({ state: "detached" });
  await ui.page.getByRole("button", { name: "Undo" }).click();
  await ui.page.getByRole("heading", { name: "Demo" }).waitFor();
  await ui.page.getByRole("button", { name: "Delete: Demo" }).click();
  await ui.page.goto("about:blank");
  await eventually(() => ui.api.connections.map((each) => each.id), (ids) => ids.join() === "mine");
});

test("shows state and last error of an unreachable active connection", async () => {
  await using ui = await bench.open("/settings/connections", {
    prepare: (api) => {
      api.connections = [{ ...demoConnection(), active: false }, { ...SAVED, active: true }];
      const { id, name, kind, base_url } = SAVED;
      api.health = {
        status: "degraded",
        connection: { id, name, kind, base_url, reachable: false, latency_ms: 3, error: "connection refused" },
      };
    },
  });
  await ui.page.locator(".connection.active").getByText("connection refused").waitFor();
  await ui.page.getByRole("link", { name: "My server Unreachable" }).waitFor();
});

test("the result of a test isn't shown for a URL that was typed meanwhile", async () => {
  await using ui = await bench.open("/settings/connections/new");
  const { page } = ui;
  const typed = Promise.withResolvers<void>();
  await page.route("**/api/connections/test", async (route) => {
    await typed.promise;
    await route.continue();
  });
  const test = page.getByRole("button", { name: "Test", exact: true });
  await page.getByLabel("URL").fill("http://127.0.0.1:9/v1");
  await test.click();
  await page.getByLabel("URL").fill("http://127.0.0.1:10/v1");
  typed.resolve();
  await test.and(page.locator(":enabled")).waitFor();
  expect(await page.getByText("The connection works").count()).toBe(0);
  await test.click();
  await page.getByText("The connection works").waitFor();
});
