import { expect, test } from "vitest";

const MODULE = new URL("../../../services/process/hangup.ts", import.meta.url).href;
const ASK = `import { isHangupIgnored } from "${MODULE}"; console.log(await isHangupIgnored());`;

/** Asks in a process of its own, which a shell starts after `before`. */
async function ask(before: string): Promise<string> {
  const script = `${before} exec "$0" eval "$1"`;
  const { stdout } = await new Deno.Command("sh", { args: ["-c", script, Deno.execPath(), ASK] }).output();
  return new TextDecoder().decode(stdout).trim();
}

test.skipIf(Deno.build.os === "windows")(
  "tells a program that is to outlive its terminal from another one",
  async () => {
    expect(await ask("")).toBe("false");
    expect(await ask("trap '' HUP;")).toBe("true");
  },
);
