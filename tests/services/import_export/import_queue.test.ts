import { expect, test, vi } from "vitest";
import { AppError } from "../../../services/errors.ts";
import { PATIENCE_MS } from "../../helpers/app/patience.ts";
import { createReport } from "../../../services/import_export/import_report.ts";
import type { ImportedConversation } from "../../../services/import_export/import_item.ts";
import { ByteBudget } from "../../../services/async/byte_budget.ts";
import { ImportQueue, type ImportQueueDeps } from "../../../services/import_export/import_queue.ts";

function chat(n: number, messages = 1): ImportedConversation {
  const said = Array.from({ length: messages }, (_, index) => ({ id: `c${n}-${index}`, role: "user", content: "Hm." }));
  return { what: "conversation", id: `c${n}`, source: `${n}`, name: "", hash: "", head: {}, messages: said };
}

/** A fake conversation store that stores one on request. */
function slowRoom() {
  const doors = new Map<string, PromiseWithResolvers<"added" | "changed_here">>();
  const take = ({ id }: { id: string }) => {
    const door = Promise.withResolvers<"added" | "changed_here">();
    doors.set(id, door);
    return door.promise;
  };
  const budget = new ByteBudget();
  return {
    doors,
    budget,
    parts: { conversationImporter: { importConversation: take }, budget } as unknown as ImportQueueDeps,
  };
}

test("conversations are imported in parallel, and the report lists them in order", async () => {
  const { doors, parts } = slowRoom();
  const report = createReport("tavern", false);
  const queue = new ImportQueue(parts, report);
  for (let n = 0; n < 3; n++) await queue.take(chat(n));
  await queue.take({ what: "note", level: "changed", source: "note", reason: "between" });
  await queue.take(chat(3));
  expect([...doors.keys()]).toEqual(["c0", "c1", "c2", "c3"]); // none waits for the previous one
  doors.get("c3")!.resolve("changed_here");
  doors.get("c1")!.reject(new AppError("conflict", "it clashes"));
  doors.get("c2")!.resolve("added");
  doors.get("c0")!.resolve("added");
  await queue.finish();
  expect(report.lines.map(({ source }) => source)).toEqual(["1", "note", "3"]);
  expect(report.counts.conversation).toEqual({ added: 2, updated: 0, present: 1, refused: 1 });
  expect(report.messages).toBe(2);
});

test("a long chat waits until there is space for it", async () => {
  const { doors, parts } = slowRoom();
  const queue = new ImportQueue(parts, createReport("tavern", false));
  await queue.take(chat(0));
  const taken = queue.take(chat(1, 4_001));
  await Promise.resolve();
  expect([...doors.keys()]).toEqual(["c0"]);
  doors.get("c0")!.resolve("added");
  await taken;
  expect([...doors.keys()]).toEqual(["c0", "c1"]);
  doors.get("c1")!.resolve("added");
  await queue.finish();
});

test(
  "a large chat is stored on its own and counts against the byte budget until it is stored",
  { tags: ["F07"] },
  async () => {
    const { doors, budget, parts } = slowRoom();
    const queue = new ImportQueue(parts, createReport("tavern", false));
    const large = chat(0);
    large.messages[0]!.content = "x".repeat(20_000_000);
    const taken = queue.take(large);
    await vi.waitFor(() => expect([...doors.keys()]).toEqual(["c0"]), { timeout: PATIENCE_MS });
    expect(budget.usedBytes).toBeGreaterThan(60_000_000);
    doors.get("c0")!.resolve("added");
    await taken;
    await vi.waitFor(() => expect(budget.usedBytes).toBe(0), { timeout: PATIENCE_MS });
  },
);

test("a full disk ends the import", async () => {
  const { doors, parts } = slowRoom();
  const queue = new ImportQueue(parts, createReport("tavern", false));
  await queue.take(chat(0));
  doors.get("c0")!.reject(new AppError("storage_full", "the disk is full"));
  await expect(queue.finish()).rejects.toMatchObject({ code: "storage_full" });
});
