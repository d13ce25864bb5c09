import { expect, test } from "vitest";
import { createLog } from "../../services/log.ts";

function lines(options: { asJson: boolean; level?: "debug" | "warn" }): string[] {
  const written: string[] = [];
  const write = (line: string) => void written.push(line);
  const log = createLog({ level: "warn", now: () => 0, write, ...options });
  log("info", "A job is done", { kind: "backup" });
  log("warn", "A call failed", { connection_id: undefined, status: 400, error: 'no "model"\nhere' });
  return written;
}

test("writes text for a terminal: one line each, with the fields that have a value", () => {
  expect(lines({ asJson: false })).toEqual([
    String.raw`1970-01-01T00:00:00.000Z warn  A call failed status=400 error="no \"model\"\nhere"`,
  ]);
});

test("writes JSON for programs: one object per line", () => {
  expect(lines({ asJson: true, level: "debug" }).map((line) => JSON.parse(line))).toEqual([
    { time: "1970-01-01T00:00:00.000Z", level: "info", message: "A job is done", kind: "backup" },
    {
      time: "1970-01-01T00:00:00.000Z",
      level: "warn",
      message: "A call failed",
      status: 400,
      error: 'no "model"\nhere',
    },
  ]);
});
