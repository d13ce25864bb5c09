import { expect, test } from "vitest";
import { addLine, createReport, importReason } from "../../../services/import_export/import_report.ts";

test("counts the lines of a report by reason, with what differs in the examples", () => {
  const report = createReport("chatgpt", false);
  const unknown = (kinds: string) => importReason("chatgpt_unknown", { kinds });
  addLine(report, { level: "changed", source: "#1", ...unknown("canvas"), count: 2 });
  addLine(report, { level: "left_out", source: "", ...importReason("other_files"), count: 3 });
  addLine(report, { level: "changed", source: "#2", ...unknown("canvas") });
  expect(report.ledger).toEqual([
    {
      kind: "chatgpt_unknown",
      level: "changed",
      count: 3,
      reason: "messages of a kind that Parlor doesn't know: canvas",
      params: { kinds: "canvas" },
      examples: ["#1: canvas", "#2: canvas"],
    },
    { kind: "other_files", level: "left_out", count: 3, reason: "files without chats aren't imported" },
  ]);
  addLine(report, { level: "changed", source: "#3", ...unknown("robot") });
  expect(report.ledger[0]).toMatchObject({
    count: 4,
    reason: "messages of a kind that Parlor doesn't know: …",
    params: { kinds: "…" },
    examples: ["#1: canvas", "#2: canvas", "#3: robot"],
  });
});

test("the ledger counts the lines beyond the limit", () => {
  const report = createReport("tavern", true);
  for (let n = 0; n < 1_200; n++) addLine(report, { level: "refused", source: `${n}`, reason: `it has ${n} legs` });
  expect(report).toMatchObject({ lines_dropped: 200 });
  expect(report.ledger).toMatchObject([{ kind: "other", level: "refused", count: 1_200 }]);
  expect(report.ledger[0]!.examples).toHaveLength(5);
});
