import { afterAll, beforeAll, expect, test } from "vitest";
import { Buffer } from "node:buffer";
import { findAxeProblems, findAxeProblemsInBothSchemes, holdToasts } from "../../../helpers/browser/browser.ts";
import type { FakeApi } from "../../../helpers/fakes/api/fake_api.ts";
import { eventually, openUiBench, PHONE, sendMessage, type UiBench, WIDTHS } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

function fill({ people }: FakeApi): void {
  people.addPersona("robin", "Robin", "A cartographer.");
  people.addPersona("grey", "Grey");
}

test("creates a persona with an image, and lists it", async () => {
  await using ui = await bench.open("/settings/personas");
  await ui.page.getByText("No personas yet").waitFor();
  await ui.page.getByRole("link", { name: "New persona" }).click();
  await ui.page.getByLabel("Name").fill("Robin");
  await ui.page.getByLabel("Description").fill("A cartographer.");
  await ui.page.locator(".persona-picture input").setInputFiles({
    name: "p.png",
    mimeType: "image/png",
    buffer: Buffer.from(ui.api.people.picture),
  });
  await ui.page.getByRole("button", { name: "Save" }).click();
  await ui.page.getByText("Robin saved").waitFor();
  await ui.page.locator(".persona-portrait img").waitFor();
  const [persona] = ui.api.people.personas.values();
  expect(persona).toMatchObject({ name: "Robin", description: "A cartographer.", has_avatar: true });
});

test("the description of a persona has its own place in the prompt", async () => {
  await using ui = await bench.open("/settings/personas/robin", { prepare: fill });
  await ui.page.getByLabel("Place in the prompt").selectOption("at_depth");
  await ui.page.getByLabel("Depth (messages from the end)").fill("3");
  await ui.page.getByLabel("Role").selectOption("user");
  await ui.page.getByRole("button", { name: "Save" }).click();
  await ui.page.getByText("Robin saved").waitFor();
  const { placement } = ui.api.people.personas.get("robin")!;
  expect(placement).toEqual({ position: "at_depth", depth: 3, role: "user" });
});

test("a persona is chosen for new chats with a character", async () => {
  await using ui = await bench.open("/settings/personas/robin", {
    prepare: (api) => {
      fill(api);
      api.people.add("fox", { name: "Fox", first_mes: "{{user}}?" });
    },
  });
  const group = ui.page.getByRole("group", { name: "For new chats with" });
  await group.getByRole("button", { name: "Add Fox" }).click();
  await group.getByRole("button", { name: "Remove Fox" }).waitFor();
  await ui.page.getByRole("button", { name: "Save" }).click();
  await ui.page.getByText("Robin saved").waitFor();
  expect(ui.api.people.personas.get("robin")!.character_ids).toEqual(["fox"]);
  await using other = await bench.open("/characters/fox", { api: ui.api });
  await other.page.getByText("Robin?").waitFor();
  await other.page.getByRole("button", { name: "Start chat" }).click();
  await eventually(() => [...ui.api.conversations.values()].at(-1)?.persona_id, (id) => id === "robin");
});

test("imports card files as personas, names others with the reason, and exports each as a card", async () => {
  await using ui = await bench.open("/settings/personas", { prepare: fill });
  const file = (name: string, text: string) => ({ name, mimeType: "application/json", buffer: Buffer.from(text) });
  await holdToasts(ui.page); // one of them has the button that is pressed in the end
  const chooser = ui.page.waitForEvent("filechooser");
  await ui.page.getByRole("button", { name: "Import", exact: true }).click();
  await (await chooser).setFiles([
    file("tern.json", JSON.stringify({ name: "Tern", description: "A pilot." })),
    file("broken.png", "?"),
  ]);
  await ui.page.getByText("1 persona imported").waitFor();
  const refused = ui.page.getByRole("alert").filter({ hasText: "Couldn’t import 1 file" });
  await refused.getByText("broken.png").waitFor();
  await refused.getByText("This file holds no persona").waitFor();
  await ui.page.getByRole("link", { name: "Tern" }).waitFor();
  await expect.poll(() => findAxeProblems(ui.page)).toEqual([]);
  await ui.page.getByRole("button", { name: "More actions for Robin" }).click();
  const way = ui.page.getByRole("menuitem", { name: "Export card" });
  await expect.poll(() => way.getAttribute("href")).toBe("/api/personas/robin/export");
  await ui.page.keyboard.press("Escape");
  await ui.page.getByRole("button", { name: "Open", exact: true }).click();
  await ui.page.getByLabel("Name").waitFor();
  await expect.poll(() => ui.page.getByLabel("Name").inputValue()).toBe("Tern");
});

test("shows a persona that was changed elsewhere before overwriting it", async () => {
  await using ui = await bench.open("/settings/personas/robin", { prepare: fill });
  await ui.page.getByLabel("Description").fill("Mine.");
  ui.api.people.addPersona("robin", "Robin", "Theirs.");
  await ui.page.getByRole("button", { name: "Save" }).click();
  await ui.page.getByText("It’s now Robin. Theirs.").waitFor();
  await expect.poll(() => ui.api.people.personas.get("robin")!.description).toBe("Theirs.");
  await ui.page.getByRole("button", { name: "Save" }).click();
  await eventually(() => ui.api.people.personas.get("robin")!.description, (text) => text === "Mine.");
});

test("sets and unsets the default persona; Undo restores a deleted one", async () => {
  await using ui = await bench.open("/settings/personas", { prepare: fill });
  const menu = ui.page.getByRole("button", { name: "More actions for Robin" });
  await menu.click();
  await ui.page.getByRole("menuitem", { name: "Set as default" }).click();
  await eventually(() => ui.api.settings.default_persona_id, (id) => id === "robin");
  await ui.page.getByText("Default").waitFor();
  await menu.click();
  await ui.page.getByRole("menuitem", { name: "Remove as default" }).click();
  await eventually(() => ui.api.settings.default_persona_id, (id) => id === null);
  await holdToasts(ui.page);
  await menu.click();
  await ui.page.getByRole("menuitem", { name: "Delete" }).click();
  await ui.page.getByText("Robin deleted").waitFor();
  await expect.poll(() => menu.count()).toBe(0);
  await ui.page.getByRole("button", { name: "Undo" }).click();
  await menu.waitFor();
  await expect.poll(() => ui.api.seen("DELETE", /personas/)).toEqual([]);
});

test("switches the chat's persona; earlier messages keep their names", async () => {
  await using ui = await bench.open("/c/c1", {
    prepare: (api) => {
      fill(api);
      api.people.add("fox", { name: "Reynard", nickname: "Fox" });
      const chat = api.addConversation("c1", "A chat", [
        { role: "user", content: "Hi", persona_id: "robin" },
        { role: "assistant", content: "Hello", character_id: "fox" },
      ]);
      Object.assign(chat, { participants: [{ character_id: "fox" }], persona_id: "robin" });
    },
  });
  await ui.page.getByRole("heading", { name: "Robin" }).waitFor();
  await ui.page.getByRole("heading", { name: "Fox", level: 2 }).waitFor();
  await ui.page.locator(".reply .speaker-portrait img").waitFor();
  await ui.page.getByRole("button", { name: "Speaking as Robin" }).click();
  await ui.page.getByRole("menuitemradio", { name: "Grey" }).click();
  await ui.page.getByRole("button", { name: "Speaking as Grey" }).waitFor();
  await eventually(() => ui.api.conversations.get("c1")!.persona_id, (id) => id === "grey");
  await sendMessage(ui.page, "And now?");
  await ui.page.getByRole("heading", { name: "Grey" }).waitFor();
  await ui.page.getByText("Hello", { exact: true }).nth(1).waitFor();
  await expect.poll(() => ui.page.getByRole("heading", { name: "Robin" }).count()).toBe(1);
});

test("a new chat starts with the default persona, unless another or none was selected", async () => {
  const prepare = (api: FakeApi) => {
    fill(api);
    api.settings.default_persona_id = "robin";
  };
  for (
    const [choice, expected] of [[undefined, "robin"], ["Grey", "grey"], ["My own name", undefined]] as const
  ) {
    await using ui = await bench.open("/new", { prepare });
    const menu = ui.page.getByRole("button", { name: "Speaking as Robin" });
    await menu.waitFor();
    if (choice) {
      await menu.click();
      await ui.page.getByRole("menuitemradio", { name: choice }).click();
    }
    await sendMessage(ui.page, "Hi");
    await ui.page.locator(".reply[data-status=complete]").waitFor();
    await expect.poll(() => [...ui.api.conversations.values()].map(({ persona_id }) => persona_id)).toEqual([expected]);
  }
});

test.each(WIDTHS)(
  "axe finds nothing among the personas and in a chat with one, light and dark, %s",
  async (_, options) => {
    await using ui = await bench.open("/settings/personas", {
      ...options,
      prepare: (api) => {
        fill(api);
        api.settings.default_persona_id = "robin";
        api.people.add("fox", { name: "Fox" });
        const said = [{ role: "user", content: "Hi", persona_id: "robin" }, { role: "assistant", content: "Hello" }];
        Object.assign(api.addConversation("c1", "A chat", said), { participants: [{ character_id: "fox" }] });
      },
    });
    await ui.page.getByText("Default").waitFor();
    await expect.poll(() => findAxeProblemsInBothSchemes(ui.page)).toEqual([]);
    await ui.page.goto(`${ui.api.origin}/settings/personas/robin`);
    await ui.page.getByLabel("Description").waitFor();
    await expect.poll(() => findAxeProblemsInBothSchemes(ui.page)).toEqual([]);
    await ui.page.goto(`${ui.api.origin}/c/c1`);
    await ui.page.getByRole("heading", { name: "Fox", level: 2 }).waitFor();
    await expect.poll(() => findAxeProblemsInBothSchemes(ui.page)).toEqual([]);
    expect(ui.errors).toEqual([]);
  },
);

test.each([["wide", {}], ["phone", PHONE]] as const)(
  "the bottom of the sidebar shows and selects the persona, on every device (%s)",
  async (width, device) => {
    await using ui = await bench.open("/new", {
      ...device,
      prepare: (api) => {
        fill(api);
        api.settings.display_name = "Ada";
      },
    });
    await using other = await bench.open("/new", { api: ui.api });
    const openSidebar = async () => {
      if (width === "phone") await ui.page.getByRole("button", { name: "Open the chat list" }).click();
    };
    await openSidebar();
    await ui.page.getByRole("button", { name: "You: Ada" }).click();
    const own = ui.page.getByRole("menuitemradio", { name: "My own name" });
    await expect.poll(() => own.getAttribute("aria-checked")).toBe("true");
    await ui.page.getByRole("menuitemradio", { name: "Robin" }).click();
    await eventually(() => ui.api.settings.default_persona_id, (id) => id === "robin");
    await ui.page.getByRole("button", { name: "You: Robin" }).waitFor();
    await expect.poll(() => findAxeProblems(ui.page)).toEqual([]);
    await other.page.getByRole("button", { name: "You: Robin" }).waitFor();
    // A new chat has Robin; the next selection doesn't change it.
    if (width === "phone") await ui.page.keyboard.press("Escape");
    await sendMessage(ui.page, "Hello");
    await eventually(() => [...ui.api.conversations.values()][0]?.persona_id, (id) => id === "robin");
    await openSidebar();
    await ui.page.getByRole("button", { name: "You: Robin" }).click();
    await ui.page.getByRole("menuitem", { name: "Manage personas" }).click();
    await ui.page.getByRole("heading", { name: "Personas" }).waitFor();
  },
);

test("reverts a refused selection with a toast; a deleted persona counts as none", async () => {
  await using ui = await bench.open("/new", {
    prepare: (api) => {
      fill(api);
      Object.assign(api.settings, { display_name: "", default_persona_id: "gone" });
    },
  });
  await ui.page.getByRole("button", { name: "You: No persona" }).click();
  ui.api.refuse("PATCH /api/settings", { status: 507, code: "storage_full", message: "The disk is full" });
  await ui.page.getByRole("menuitemradio", { name: "Grey" }).click();
  await ui.page.getByText("The disk is full").waitFor();
  await ui.page.getByRole("button", { name: "You: No persona" }).waitFor();
});
