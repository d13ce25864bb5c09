/** The work of one download job: parts, verification, and the renames that make a model of them. */
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../errors.ts";
import type { JobContext } from "../../jobs/job.ts";
import { readFileIfExists, writeFileAtomic } from "../../storage/atomic_file.ts";
import { type DownloadParams, DownloadProgress } from "./download_progress.ts";
import { downloadFile, type DownloadLimits, isExpectedHash, toTransferTarget } from "./file_download.ts";
import type { Hub, HubFile } from "../hub/hub.ts";
import { type ModelsFolder, statIfExists, toDownloadKey } from "../local/models_folder.ts";
import { Transfer } from "./download_worker_client.ts";
import type { TransferPolicy } from "./download_protocol.ts";

/** What download jobs work with. */
export interface DownloadOptions {
  hub: Hub;
  folder: ModelsFolder;
  policy: TransferPolicy;
  limits: DownloadLimits;
}

/** Left free for everything else that wants to write. */
const RESERVE_BYTES = 256 * 1024 * 1024;

/** Does the work of one job. Part files stay behind when it fails or the server stops; its kind's `discard` removes them. */
export async function runDownload(options: DownloadOptions, context: JobContext): Promise<void> {
  const params = context.params as DownloadParams;
  const { folder } = options;
  const progress = new DownloadProgress(params, context);
  const work = await folder.makeWorkFolder(toDownloadKey(params));
  const partOf = (index: number) => join(work, `${index}.part`);
  await dropForeignParts(work, params.files);
  await using transfer = new Transfer({ policy: options.policy, idleMs: options.limits.idleMs }, context.signal);
  const missing: { file: HubFile; index: number }[] = [];
  for (const [index, file] of params.files.entries()) {
    if (await isInPlace(options, transfer, params, file, (bytes) => progress.found(index, bytes))) {
      progress.found(index, file.sizeBytes);
    } else missing.push({ file, index });
  }
  await assertRoom(folder, missing.map(({ file, index }) => ({ file, partPath: partOf(index) })));
  for (const { file, index } of missing) {
    await downloadFile({
      hub: options.hub,
      transfer,
      limits: options.limits,
      file,
      partPath: partOf(index),
      repo: params.repo,
      revision: params.revision,
      signal: context.signal,
      onFound: (bytes) => progress.found(index, bytes),
      onReceived: (bytes) => progress.received(index, bytes),
    });
    await assertFormat(file, partOf(index));
  }
  progress.end();
  await context.verifying();
  for (const { file, index } of missing) await folder.place(partOf(index), pathOf(params, file));
  await folder.removeWorkFolder(toDownloadKey(params));
}

function pathOf({ repo }: DownloadParams, { path }: HubFile): string {
  return `${repo}/${path}`;
}

/**
 * Parts of another commit go, unless the bytes are the same by their hash: a note beside them says what they are of.
 */
async function dropForeignParts(work: string, files: HubFile[]): Promise<void> {
  const notePath = join(work, "note.json");
  const note = JSON.stringify(
    files.map(({ path, sizeBytes, sha256, gitSha1 }) => [path, sizeBytes, sha256 ?? gitSha1]),
  );
  const before = await readFileIfExists(notePath);
  if (before !== undefined && new TextDecoder().decode(before) === note) return;
  for await (const { name } of Deno.readDir(work)) await Deno.remove(join(work, name), { recursive: true });
  await writeFileAtomic(notePath, note);
}

async function isInPlace(
  { folder }: DownloadOptions,
  transfer: Transfer,
  params: DownloadParams,
  file: HubFile,
  onProgress: (bytes: number) => void,
): Promise<boolean> {
  const path = folder.resolve(pathOf(params, file));
  const info = await statIfExists(path);
  if (info === undefined) return false;
  if (!info.isFile) throw new AppError("conflict", `Can't place "${path}": something that is no file has that name`);
  return info.size === file.sizeBytes &&
    isExpectedHash(file, await transfer.hash(toTransferTarget(file, path), onProgress));
}

async function assertRoom(folder: ModelsFolder, missing: { file: HubFile; partPath: string }[]): Promise<void> {
  let needed = 0;
  for (const { file, partPath } of missing) {
    needed += file.sizeBytes - Math.min(file.sizeBytes, (await statIfExists(partPath))?.size ?? 0);
  }
  if (needed === 0) return;
  const { bavail, bsize } = await statfs(folder.path);
  const free = Number(bavail) * Number(bsize);
  if (free >= needed + RESERVE_BYTES) return;
  const [needs, has] = [needed, free].map((bytes) => `${(bytes / 1e9).toFixed(1)} GB`);
  throw new AppError("storage_full", `Can't download to "${folder.path}": ${needs} are needed, ${has} are free`);
}

/** A saved error page is the classic broken model. */
async function assertFormat({ path, sizeBytes }: HubFile, partPath: string): Promise<void> {
  if (!path.toLowerCase().endsWith(".gguf")) return;
  using part = await Deno.open(partPath);
  const magic = new Uint8Array(4);
  await part.read(magic);
  if (sizeBytes >= 4 && new TextDecoder().decode(magic) === "GGUF") return;
  await Deno.remove(partPath);
  throw new AppError("upstream_error", `Can't use "${path}": what the hub sent is no GGUF file`);
}
