import { expect, test } from "vitest";
import { formatClock, groupByDay } from "../../../static/src/texts/format.ts";

test.each([[0, "0:00"], [45_900, "0:45"], [723_000, "12:03"], [3_600_000, "1:00:00"], [-5, "0:00"]])(
  "formats %i ms as %s",
  (elapsedMs, text) => expect(formatClock(elapsedMs)).toBe(text),
);

test("groups chats under Today, Yesterday, This week and their months, by local days", () => {
  const now = new Date(2026, 2, 15, 0, 30);
  const at = (...date: [number, number, number, number, number]) => ({
    last_message_at: new Date(...date).toISOString(),
  });
  const items = [
    at(2026, 2, 15, 0, 1),
    at(2026, 2, 14, 23, 59),
    at(2026, 2, 14, 0, 0),
    at(2026, 2, 13, 23, 59),
    at(2026, 2, 8, 0, 0),
    at(2026, 2, 7, 23, 59),
    at(2026, 1, 1, 12, 0),
    at(2025, 1, 1, 12, 0),
  ];
  expect(groupByDay(items, now).map((group) => [group.title, group.items.length])).toEqual([
    ["Today", 1],
    ["Yesterday", 2],
    ["This week", 2],
    ["March 2026", 1],
    ["February 2026", 1],
    ["February 2025", 1],
  ]);
});
