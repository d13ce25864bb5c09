import { expect, test } from "vitest";
import { ggufFile } from "../../../helpers/files/gguf_file.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { tempFolder } from "../../../helpers/files/storage_folder.ts";

/** Saves a small model where a download would. */
async function putModel(folder: string): Promise<void> {
  await Deno.mkdir(`${folder}/owner/name`, { recursive: true });
  await Deno.writeFile(`${folder}/owner/name/tiny.gguf`, ggufFile({ sizeBytes: 5000 }));
}

const modelsOf = async (app: Awaited<ReturnType<typeof openTestApp>>) => {
  const listed: { path: string }[] = await (await app.get("/api/models/local")).json();
  const { used }: { used: { what: string; size_bytes: number }[] } = await (await app.get("/api/data")).json();
  return [listed.map(({ path }) => path), used.find(({ what }) => what === "models")?.size_bytes];
};

test("models may be a link to a folder on another disk, whose mode isn't changed", async () => {
  await using here = await tempFolder();
  const [data, disk] = [here.file("data"), here.file("disk")];
  await putModel(disk);
  await Deno.chmod(disk, 0o755);
  await Deno.mkdir(data, { mode: 0o700 });
  await Deno.symlink(disk, `${data}/models`);
  await using app = await openTestApp({ dataDir: data });
  expect(await modelsOf(app)).toEqual([["owner/name/tiny.gguf"], 5000]);
  expect((await Deno.stat(disk)).mode! & 0o777).toBe(0o755);
  expect((await app.delete("/api/models/local?path=owner/name/tiny.gguf")).status).toBe(204);
  expect(await modelsOf(app)).toEqual([[], undefined]);
  expect((await Deno.lstat(`${data}/models`)).isSymlink).toBe(true);
});

test("models_dir is the path of the folder, which is created if it is missing", async () => {
  await using here = await tempFolder();
  const modelsDir = here.file("disk/models");
  await using app = await openTestApp({ config: { modelsDir } });
  expect(await modelsOf(app)).toEqual([[], undefined]);
  await putModel(modelsDir);
  await app.restart();
  expect(await modelsOf(app)).toEqual([["owner/name/tiny.gguf"], 5000]);
});

test("a link that leads nowhere or to a file, and a models_dir in the data folder, stop startup with a message", async () => {
  await using here = await tempFolder();
  const data = here.file("data");
  await Deno.mkdir(data, { mode: 0o700 });
  await Deno.writeTextFile(here.file("file"), "x");
  for (const target of [here.file("nowhere"), here.file("file")]) {
    await Deno.symlink(target, `${data}/models`);
    await expect(openTestApp({ dataDir: data })).rejects.toThrow(`Can't use the link "${data}/models"`);
    await Deno.remove(`${data}/models`);
  }
  for (const modelsDir of [here.file("file"), data, `${data}/cache/models`]) {
    await expect(openTestApp({ dataDir: data, config: { modelsDir } })).rejects.toThrow("Bad value for models_dir");
  }
});
