import { expect, test } from "vitest";
import { openWithPassphrase, sealWithPassphrase } from "../../../services/crypto/passphrase.ts";

const SECRET = new Uint8Array(32).map((_, i) => i);

test("opens a secret with its passphrase in any Unicode form, and with no other", async () => {
  const seal = await sealWithPassphrase("Ann\u00e9e 1987", SECRET);
  expect(await openWithPassphrase("Anne\u0301e 1987", seal)).toEqual(SECRET);
  await expect(openWithPassphrase("Annee 1987", seal)).rejects.toMatchObject({ code: "invalid_request" });
  expect((await sealWithPassphrase("Ann\u00e9e 1987", SECRET)).salt).not.toBe(seal.salt);
});

test("refuses a short passphrase, and a seal whose cost exceeds the memory limit", async () => {
  await expect(sealWithPassphrase("short", SECRET)).rejects.toMatchObject({ code: "invalid_request" });
  const seal = await sealWithPassphrase("long enough", SECRET);
  for (const changed of [{ n: 2 ** 40 }, { n: 3 }, { r: 0 }, { p: 2 ** 30 }, { salt: 7 }]) {
    await expect(openWithPassphrase("long enough", { ...seal, ...changed } as typeof seal)).rejects.toMatchObject({
      code: "unprocessable",
    });
  }
});
