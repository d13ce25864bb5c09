import { expect, test } from "vitest";
import { formatNotices, readPackages } from "../../../build/inventory.ts";
import { installedNotices, parseNotices } from "../../../services/diagnostics/license_notices.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";

const ROOT = new URL("../../../", import.meta.url);

test("splits the notices in the executable into its packages, each with its text", async () => {
  const store = await Array.fromAsync(Deno.readDir(new URL("node_modules/.deno/", ROOT)), ({ name }) => name);
  const folders = ["hono@", "@hono+zod-openapi@", "preact@", "dompurify@"].map((begin) => {
    const id = store.find((name) => name.startsWith(begin))!;
    return `.deno/${id}/node_modules/${begin.slice(0, -1).replace("+", "/")}`;
  });
  const packages = await readPackages(ROOT, folders);
  const ruled = { ...packages[0]!, name: "ruled", licenceText: `Above.\n\n${"=".repeat(80)}\nBelow.` };
  const text = formatNotices({
    version: "1.2.3",
    runtimeVersion: "2.6.10",
    licenceText: "MIT License\n\nOurs.",
    packages: [...packages, ruled],
  });
  const notices = parseNotices(text.trimEnd());
  expect(notices[0]).toEqual({ name: "Parlor", version: "1.2.3", licence: "", text: "MIT License\n\nOurs." });
  expect(notices[1]).toMatchObject({ name: "Deno", version: "2.6.10", licence: "MIT" });
  expect(notices.slice(2)).toEqual([...packages, ruled].map(({ name, version, licence, licenceText }) => ({
    name,
    version,
    licence,
    text: licenceText,
  })));
  expect(notices.find(({ name }) => name === "dompurify")!.licence).toContain("Apache-2.0");
});

test("from source, lists the installed packages, and says so if there are none", async () => {
  await using app = await openTestApp();
  const notices = await (await app.get("/api/licences")).json();
  const hono = notices.find(({ name }: { name: string }) => name === "hono");
  expect(hono).toMatchObject({ licence: "MIT", text: expect.stringContaining("Permission is hereby granted") });
  expect(notices.length).toBeGreaterThan(20);
  await using empty = await tempFolder();
  await expect(installedNotices(empty.file("none"))).rejects.toMatchObject({ code: "not_available" });
});
