import { expect, test } from "vitest";
import { takeOptions } from "../../../services/cli/cli_environment.ts";

const usage = { wordCount: 1, usage: "parlor backup FILE" };

test.each([
  [["--metrics", "a.backup"], ["a.backup"], ["--metrics"]],
  [["--metrics", "false", "a.backup"], ["a.backup"], ["--metrics", "false"]],
  [["--data-dir", "/data", "a.backup"], ["a.backup"], ["--data-dir", "/data"]],
  [["a.backup", "--data-dir=/data"], ["a.backup"], ["--data-dir=/data"]],
])("a boolean option doesn't take a file name as its value: %j", (args, words, rest) => {
  expect(takeOptions(args, {}, usage)).toMatchObject({ words, rest });
});
