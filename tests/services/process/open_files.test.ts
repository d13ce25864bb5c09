import { expect, test } from "vitest";
import { assertFilesForWorker, countFreeFiles } from "../../../services/process/open_files.ts";

test("counts files that can be opened, up to a number, and closes them", () => {
  for (let n = 0; n < 20; n++) expect(countFreeFiles(100)).toBe(100);
  expect(() => assertFilesForWorker()).not.toThrow();
});

test.skipIf(Deno.build.os === "windows")("refuses a Worker while too few files can be opened", async () => {
  const url = new URL("../../../services/process/open_files.ts", import.meta.url).href;
  const script = `
    import { assertFilesForWorker, countFreeFiles } from ${JSON.stringify(url)};
    const opened = [];
    while (countFreeFiles(10) === 10) opened.push(Deno.openSync("/dev/null"));
    try {
      assertFilesForWorker();
    } catch ({ code }) {
      console.log(code, countFreeFiles(10));
    }
  `;
  const command = `ulimit -n 100; exec "$0" run --no-config --no-lock -A -`;
  const child = new Deno.Command("sh", { args: ["-c", command, Deno.execPath()], stdin: "piped", stdout: "piped" })
    .spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(script));
  await writer.close();
  expect(new TextDecoder().decode((await child.output()).stdout)).toBe("not_available 9\n");
});
