import { afterAll, beforeAll, expect, test } from "vitest";
import { type Opened, openUiBench, type UiBench } from "../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const REPLY = [
  "A **bold** word, a <kbd>key</kbd>, a [link](https://example.com) and $x^2 + \\frac{1}{2}$.",
  "<details><summary>More</summary>Hidden</details>",
  "<script>alert(1)</script>",
  "```js\nconst a = 1;\n```",
  "```mermaid\ngraph TD\n  A --> B\n```",
].join("\n\n");

const show = (): Promise<Opened> =>
  bench.open("/c/c1", {
    prepare: (api) => api.addConversation("c1", "Chat", [{ role: "assistant", content: REPLY }]),
  });

test("Markdown, formulas, highlighting and diagrams need no other policy than that of the page", {
  tags: ["W04"],
}, async () => {
  await using ui = await show();
  const { page } = ui;
  for (const part of ["strong", "kbd", "math", "summary", "code span", ".diagram img"]) {
    await page.locator(`.reply ${part}`).first().waitFor();
  }
  await expect.poll(() => page.locator(".reply script").count()).toBe(0);
  expect(ui.errors.join("\n")).toBe("");
});

test("the browser refuses text as HTML, as a script, and any other policy", { tags: ["W04"] }, async () => {
  await using ui = await show();
  await ui.page.locator(".reply strong").waitFor();
  ui.page.removeAllListeners("console");
  const refused = await ui.page.evaluate(async () => {
    const { trustedTypes } = globalThis as unknown as {
      trustedTypes: { createPolicy(name: string, rules: object): unknown };
    };
    const attempts: Record<string, () => unknown> = {
      html: () => document.createElement("div").innerHTML = "<b>x</b>",
      parsed: () => new DOMParser().parseFromString("<b>x</b>", "text/html"),
      script: () => document.createElement("script").src = "/assets/x.js",
      worker: () => new Worker("/assets/x.js"),
      "another policy": () => trustedTypes.createPolicy("other", {}),
      "the same policy again": () => trustedTypes.createPolicy("parlor", {}),
    };
    const names: string[] = [];
    for (const [name, attempt] of Object.entries(attempts)) {
      try {
        await attempt();
      } catch (error) {
        if (error instanceof TypeError) names.push(name);
      }
    }
    return { names, all: Object.keys(attempts) };
  });
  expect(refused.names).toEqual(refused.all);
});
