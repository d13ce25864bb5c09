/** What lies on disk below the models folder: read from the files themselves, so that one put there by hand counts, too. */
import { join } from "node:path";
import { AppError, messageOf } from "../../errors.ts";
import { type GgufHeader, readGgufHeader } from "./gguf_header.ts";
import {
  type FileRole,
  isSafePath,
  type ModelFormat,
  parseShard,
  quantizationOf,
  roleOf,
  wholeShardGroups,
} from "./model_paths.ts";
import { lookIfThere, type ModelsFolder, readIfThere, removeIfThere } from "./models_folder.ts";
import { asObject } from "../../json/type_guards.ts";

/** One model on disk. */
export interface LocalModel {
  /** Below the models folder: of the file, of the first shard, or of the folder of an MLX snapshot. */
  path: string;
  /** By where it lies; `null` for what lies elsewhere. */
  repo: string | null;
  format: ModelFormat;
  role: FileRole;
  sizeBytes: number;
  /** All files of it, below the models folder. */
  files: string[];
  name?: string;
  quantization?: string;
  /** Number of weights. */
  parameters?: number;
  architecture?: string;
  /** Tokens the model was made for. */
  contextSize?: number;
  /** Layers that could go to a graphics card. */
  layers?: number;
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
  /** Heads by path, size and time: reading one takes up to 64 MB of the file. */
  readonly #heads = new Map<string, GgufHeader | undefined>();

  constructor(folder: ModelsFolder) {
    this.#folder = folder;
  }

  /** Gives all whole models, by path. */
  async list(): Promise<LocalModel[]> {
    const files: FoundFile[] = [];
    await this.#walk("", 0, files);
    const folders = Map.groupBy(files, ({ path }) => path.slice(0, Math.max(0, path.lastIndexOf("/"))));
    const gguf = await this.#ggufModels(files);
    const snapshots = await Promise.all([...folders.keys()].map((path) => this.#snapshot(path, files)));
    const known = new Set(files.map(headKey));
    for (const key of this.#heads.keys()) if (!known.has(key)) this.#heads.delete(key);
    return [...gguf, ...snapshots.flatMap((found) => found ?? [])].sort((a, b) => a.path < b.path ? -1 : 1);
  }

  /** @throws {AppError} `invalid_request`, `not_found` */
  async get(path: string): Promise<LocalModel> {
    this.#folder.resolve(path);
    const found = (await this.list()).find((model) => model.path === path || model.files.includes(path));
    if (found === undefined) throw new AppError("not_found", `There is no model "${path}" on this machine`);
    return found;
  }

  /** Removes the files of a model, and folders that this leaves empty. @throws {AppError} `internal` */
  async remove(model: LocalModel): Promise<void> {
    for (const file of model.files) await removeIfThere(this.#folder.resolve(file));
    const folders = new Set(model.files.flatMap((file) => {
      const names = file.split("/").slice(0, -1);
      return names.map((_, n) => names.slice(0, n + 1).join("/"));
    }));
    for (const folder of [...folders].sort((a, b) => b.length - a.length)) {
      await Deno.remove(this.#folder.resolve(folder)).catch(() => {}); // unless something else lies in it
    }
  }

  async #walk(folder: string, depth: number, files: FoundFile[]): Promise<void> {
    for await (const entry of readIfThere(join(this.#folder.path, folder))) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (files.length >= MAX_FILES || !isSafePath(path)) continue; // `.parts` is no safe path either
      if (entry.isDirectory && depth < MAX_DEPTH) await this.#walk(path, depth + 1, files);
      if (!entry.isFile) continue; // links are not followed: they lead out of the folder
      const info = await lookIfThere(this.#folder.resolve(path));
      if (info?.isFile) files.push({ path, sizeBytes: info.size, modifiedAtMs: info.mtime?.getTime() ?? 0 });
    }
  }

  async #ggufModels(files: FoundFile[]): Promise<LocalModel[]> {
    const single = files.filter(({ path }) => parseShard(path) === undefined).map((file) => [file]);
    const models: LocalModel[] = [];
    for (const whole of [...single, ...wholeShardGroups(files)]) {
      const { path } = whole[0]!;
      const role = roleOf(path);
      if (role === "other") continue;
      const heads = await Promise.all(whole.map((part) => this.#head(part)));
      if (heads.includes(undefined)) continue;
      const head = heads[0]!;
      const parameters = heads.reduce((sum, one) => sum + (one?.parameters ?? 0), 0);
      models.push({
        path,
        repo: repoOf(path),
        format: "gguf",
        role,
        sizeBytes: whole.reduce((sum, part) => sum + part.sizeBytes, 0),
        files: whole.map((part) => part.path),
        name: head.name,
        quantization: labelOf(path, head),
        parameters: parameters > 0 ? parameters : undefined,
        architecture: head.architecture,
        contextSize: head.contextSize,
        layers: head.layers,
        modifiedAtMs: Math.max(...whole.map((part) => part.modifiedAtMs)),
      });
    }
    return models;
  }

  async #head(file: FoundFile): Promise<GgufHeader | undefined> {
    const key = headKey(file);
    if (!this.#heads.has(key)) {
      const head = await readGgufHeader(this.#folder.resolve(file.path)).catch((error) => {
        console.error(`Cannot read the model "${file.path}": ${messageOf(error)}`);
        return undefined;
      });
      this.#heads.set(key, head);
    }
    return this.#heads.get(key);
  }

  /** A folder is a snapshot when its config and every file of weights that its index names are there. */
  async #snapshot(folder: string, files: FoundFile[]): Promise<LocalModel | undefined> {
    if (folder === "") return undefined;
    const inside = files.filter(({ path }) => path.startsWith(`${folder}/`) && !path.endsWith(".gguf"));
    const names = new Set(inside.map(({ path }) => path.slice(folder.length + 1)));
    const hasWeights = [...names].some((name) => /^model.*\.safetensors$/.test(name));
    if (!names.has("config.json") || !hasWeights) return undefined;
    const config = await this.#json(`${folder}/config.json`);
    const index = names.has(INDEX) ? await this.#json(`${folder}/${INDEX}`) : {};
    if (config === undefined || index === undefined) return undefined;
    if (Object.values(asObject(index.weight_map)).some((name) => !names.has(String(name)))) return undefined;
    const bits = asObject(config.quantization).bits;
    const parameters = asObject(index.metadata).total_parameters;
    return {
      path: folder,
      repo: repoOf(`${folder}/config.json`),
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

  async #json(path: string): Promise<Record<string, unknown> | undefined> {
    try {
      const absolute = this.#folder.resolve(path);
      if ((await Deno.stat(absolute)).size > MAX_JSON_BYTES) return undefined;
      return asObject(JSON.parse(await Deno.readTextFile(absolute)));
    } catch {
      return undefined; // not there, or a stranger's idea of JSON: then it is no model
    }
  }
}

const INDEX = "model.safetensors.index.json";

function repoOf(path: string): string | null {
  const names = path.split("/");
  return names.length >= 3 ? `${names[0]}/${names[1]}` : names.length === 2 ? names[0]! : null;
}

/** What the file says of itself; its name says more where it was mixed by a recipe of its maker (`UD-`). */
function labelOf(path: string, { quantization }: GgufHeader): string | undefined {
  const named = quantizationOf(path);
  return named?.startsWith("UD-") ? named : quantization ?? named;
}

function headKey({ path, sizeBytes, modifiedAtMs }: FoundFile): string {
  return `${path}\n${sizeBytes}\n${modifiedAtMs}`;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}
