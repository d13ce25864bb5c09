/** Lists the models in the models folder. Reads the files themselves, so that models copied there by hand appear, too. */
import { join } from "node:path";
import { AppError, getErrorMessage } from "../../errors.ts";
import type { Log } from "../../log.ts";
import { type GgufHeader, readGgufHeader } from "./gguf_header.ts";
import {
  type FileRole,
  findCompleteModels,
  isSafePath,
  type ModelFormat,
  type ModelsFolder,
  parseQuantization,
  parseRole,
  parseShard,
  readDirIfExists,
  removeIfExists,
  statIfExists,
} from "./models_folder.ts";
import { asObject } from "../../json/type_guards.ts";

/** One model on disk. */
export interface LocalModel {
  /** Relative to the models folder: the file, the first shard, or the folder of an MLX snapshot. */
  path: string;
  /** From the path; `null` if it isn't in a repository's folder. */
  repo: string | null;
  format: ModelFormat;
  role: FileRole;
  sizeBytes: number;
  /** All its files, relative to the models folder. */
  files: string[];
  name?: string;
  quantization?: string;
  /** Number of weights. */
  parameters?: number;
  architecture?: string;
  /** Trained context size in tokens. */
  contextSize?: number;
  /** Number of layers that can be offloaded to a GPU. */
  layers?: number;
  /** Whether the file has a chat template; `undefined` if that's unknown. */
  hasChatTemplate?: boolean;
  modifiedAtMs: number;
}

interface FoundFile {
  path: string;
  sizeBytes: number;
  modifiedAtMs: number;
}

const MAX_DEPTH = 8;
const MAX_FILES = 20_000;
const MAX_JSON_BYTES = 4 * 1024 * 1024;

/** The models on disk. */
export class LocalModels {
  readonly #folder: ModelsFolder;
  readonly #log: Log;
  /** Headers by path, size and time. Reading one reads up to 64 MB of the file. */
  readonly #headers = new Map<string, GgufHeader | undefined>();

  constructor(folder: ModelsFolder, log: Log) {
    this.#folder = folder;
    this.#log = log;
  }

  /** Lists all complete models by path. */
  async list(): Promise<LocalModel[]> {
    const files: FoundFile[] = [];
    await this.#walk("", 0, files);
    const folders = Map.groupBy(files, ({ path }) => path.slice(0, Math.max(0, path.lastIndexOf("/"))));
    const gguf = await this.#listGgufModels(files);
    const snapshots = await Promise.all([...folders.keys()].map((path) => this.#readSnapshot(path, files)));
    const known = new Set(files.map(toHeaderKey));
    for (const key of this.#headers.keys()) if (!known.has(key)) this.#headers.delete(key);
    return [...gguf, ...snapshots.flatMap((found) => found ?? [])].sort((a, b) => a.path < b.path ? -1 : 1);
  }

  /** @throws {AppError} `invalid_request`, `not_found` */
  async get(path: string): Promise<LocalModel> {
    this.#folder.resolve(path);
    const found = (await this.list()).find((model) => model.path === path || model.files.includes(path));
    if (found === undefined) throw new AppError("not_found", `Model "${path}" not found on this machine`);
    return found;
  }

  /** Deletes the files of a model, and folders that become empty. @throws {AppError} `internal` */
  async remove(model: LocalModel): Promise<void> {
    for (const file of model.files) await removeIfExists(this.#folder.resolve(file));
    const folders = new Set(model.files.flatMap((file) => {
      const names = file.split("/").slice(0, -1);
      return names.map((_, n) => names.slice(0, n + 1).join("/"));
    }));
    for (const folder of [...folders].sort((a, b) => b.length - a.length)) {
      await Deno.remove(this.#folder.resolve(folder)).catch(() => {}); // Not empty
    }
  }

  async #walk(folder: string, depth: number, files: FoundFile[]): Promise<void> {
    for await (const entry of readDirIfExists(join(this.#folder.path, folder))) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (files.length >= MAX_FILES || !isSafePath(path)) continue; // This also skips `.parts`.
      if (entry.isDirectory && depth < MAX_DEPTH) await this.#walk(path, depth + 1, files);
      if (!entry.isFile) continue; // Links aren't followed: they may lead out of the folder.
      const info = await statIfExists(this.#folder.resolve(path));
      if (info?.isFile) files.push({ path, sizeBytes: info.size, modifiedAtMs: info.mtime?.getTime() ?? 0 });
    }
  }

  async #listGgufModels(files: FoundFile[]): Promise<LocalModel[]> {
    const single = files.filter(({ path }) => parseShard(path) === undefined).map((file) => [file]);
    const models: LocalModel[] = [];
    for (const whole of [...single, ...findCompleteModels(files)]) {
      const { path } = whole[0]!;
      const role = parseRole(path);
      if (role === "other") continue;
      const heads = await Promise.all(whole.map((part) => this.#readHeader(part)));
      if (heads.includes(undefined)) continue;
      const head = heads[0]!;
      const parameters = heads.reduce((sum, one) => sum + (one?.parameters ?? 0), 0);
      models.push({
        path,
        repo: toRepo(path),
        format: "gguf",
        role,
        sizeBytes: whole.reduce((sum, part) => sum + part.sizeBytes, 0),
        files: whole.map((part) => part.path),
        name: head.name,
        quantization: getQuantization(path, head),
        parameters: parameters > 0 ? parameters : undefined,
        architecture: head.architecture,
        contextSize: head.contextSize,
        layers: head.layers,
        hasChatTemplate: role === "model" ? head.hasChatTemplate : undefined,
        modifiedAtMs: Math.max(...whole.map((part) => part.modifiedAtMs)),
      });
    }
    return models;
  }

  async #readHeader(file: FoundFile): Promise<GgufHeader | undefined> {
    const key = toHeaderKey(file);
    if (!this.#headers.has(key)) {
      const head = await readGgufHeader(this.#folder.resolve(file.path)).catch((error) => {
        this.#log("warn", "Can't read a model", { path: file.path, error: getErrorMessage(error) });
        return undefined;
      });
      this.#headers.set(key, head);
    }
    return this.#headers.get(key);
  }

  /** Reads a folder as an MLX snapshot: it must have its config and every weight file in its index. */
  async #readSnapshot(folder: string, files: FoundFile[]): Promise<LocalModel | undefined> {
    if (folder === "") return undefined;
    const inside = files.filter(({ path }) => path.startsWith(`${folder}/`) && !path.endsWith(".gguf"));
    const names = new Set(inside.map(({ path }) => path.slice(folder.length + 1)));
    const hasWeights = [...names].some((name) => /^model.*\.safetensors$/.test(name));
    if (!names.has("config.json") || !hasWeights) return undefined;
    const config = await this.#readJson(`${folder}/config.json`);
    const index = names.has(INDEX) ? await this.#readJson(`${folder}/${INDEX}`) : {};
    if (config === undefined || index === undefined) return undefined;
    if (Object.values(asObject(index.weight_map)).some((name) => !names.has(String(name)))) return undefined;
    const bits = asObject(config.quantization).bits;
    const parameters = asObject(index.metadata).total_parameters;
    return {
      path: folder,
      repo: toRepo(`${folder}/config.json`),
      format: "mlx",
      role: "model",
      sizeBytes: inside.reduce((sum, file) => sum + file.sizeBytes, 0),
      files: inside.map(({ path }) => path),
      quantization: isCount(bits) ? `${bits}-bit` : undefined,
      parameters: isCount(parameters) ? parameters : undefined,
      architecture: typeof config.model_type === "string" ? config.model_type.slice(0, 100) : undefined,
      contextSize: isCount(config.max_position_embeddings) ? config.max_position_embeddings : undefined,
      modifiedAtMs: Math.max(...inside.map((file) => file.modifiedAtMs)),
    };
  }

  async #readJson(path: string): Promise<Record<string, unknown> | undefined> {
    try {
      const absolute = this.#folder.resolve(path);
      if ((await Deno.stat(absolute)).size > MAX_JSON_BYTES) return undefined;
      return asObject(JSON.parse(await Deno.readTextFile(absolute)));
    } catch {
      return undefined; // Missing or not JSON: not a model
    }
  }
}

const INDEX = "model.safetensors.index.json";

function toRepo(path: string): string | null {
  const names = path.split("/");
  return names.length >= 3 ? `${names[0]}/${names[1]}` : names.length === 2 ? names[0]! : null;
}

/** Returns the quantization from the header. The file name is more precise for dynamic quantization (`UD-`). */
function getQuantization(path: string, { quantization }: GgufHeader): string | undefined {
  const named = parseQuantization(path);
  return named?.startsWith("UD-") ? named : quantization ?? named;
}

function toHeaderKey({ path, sizeBytes, modifiedAtMs }: FoundFile): string {
  return `${path}\n${sizeBytes}\n${modifiedAtMs}`;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}
