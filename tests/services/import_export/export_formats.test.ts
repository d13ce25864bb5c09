import { expect, test } from "vitest";
import { toMarkdown } from "../../../services/import_export/export_formats.ts";
import { REPLIES } from "../../corpus/replies/replies.ts";

test("an export to Markdown has each message as it was written", () => {
  const created_at = "2026-01-02T03:04:05.000Z";
  const fixed = { role: "assistant" as const, created_at, updated_at: created_at, variant_count: 1, active_variant: 0 };
  const messages = REPLIES.map(({ markdown }, n) => ({
    ...fixed,
    id: `m${n}`,
    status: "complete" as const,
    content: markdown,
  }));
  const conversation = { id: "c", title: "Use <T> & more", created_at, messages };
  const exported = toMarkdown(conversation, { user: "You", assistant: "Model", characters: new Map() });
  const heading = "**Model** · 2026-01-02 03:04\n\n";
  expect(exported).toBe(`# Use <T> & more\n\n${REPLIES.map(({ markdown }) => heading + markdown).join("\n\n")}\n`);
});
