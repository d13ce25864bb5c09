/**
 * Imports as jobs: they continue when the client disconnects, and end with a report. A killed import starts again
 * without creating duplicates.
 */
import { join } from "node:path";
import { createUuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import type { JobContext, JobRunner, JobSnapshot } from "../jobs/job_runner.ts";
import { writePieces } from "../storage/atomic_file.ts";
import type { ImportKind } from "./import_item.ts";
import { ImportQueue, type ImportQueueDeps } from "./import_queue.ts";
import { readImport, type ReadingLimits } from "./import_reading.ts";
import { addLine, createReport, importReason, type ImportReport } from "./import_report.ts";
import { ImportSources, type ImportSourcesDeps } from "./import_sources.ts";
import type { Sandbox } from "../platform/sandbox/sandbox.ts";

/** Dependencies of `Imports`. */
export interface ImportDeps extends ImportQueueDeps, ImportSourcesDeps {
  jobs: JobRunner;
  sandbox: Sandbox;
  /** Folder for uploads. Each is deleted after its import, or after an hour. */
  folder: string;
  /** Lower limits of the reader, for tests. */
  limits?: ReadingLimits;
}

/** Parameters of an import. */
export interface ImportRequest {
  kind: ImportKind;
  isDryRun: boolean;
  /** File name from the client; only used for single files. */
  name?: string;
}

/** Parameters of the job; JSON. */
interface ImportParams extends ImportRequest {
  uploadId: string;
  /** The stored file that is read again. */
  sourceId?: string;
  /** Stores the file after the import, so that it can be read again. */
  keepsSource?: boolean;
}

/** Kind of the jobs. */
const IMPORT = "import";

const TITLES: Record<ImportKind, string> = {
  sillytavern: "Import from SillyTavern",
  tavern: "Import of Tavern chats",
  risuai: "Import from RisuAI",
  agnai: "Import from Agnai",
  chatgpt: "Import from ChatGPT",
  claude: "Import from Claude",
  openwebui: "Import from Open WebUI",
  librechat: "Import from LibreChat",
  lobechat: "Import from LobeChat",
  chatbox: "Import from Chatbox",
  lmstudio: "Import from LM Studio",
  jan: "Import from Jan",
  llamacpp: "Import from llama.cpp",
  cherrystudio: "Import from Cherry Studio",
  koboldcpp: "Import from KoboldCpp",
  textgen: "Import from text-generation-webui",
  characterai: "Import from Character.AI",
  backyard: "Import from Backyard AI",
  parlor: "Import of an export",
};
const RETENTION_MS = 60 * 60 * 1000;
const SWEEP_MS = 10 * 60 * 1000;

/** Runs imports, one at a time. */
export class Imports {
  /** The files of imports that are stored for a while. */
  readonly sources: ImportSources;
  readonly #deps: ImportDeps;
  /** When each upload was last used. */
  readonly #usedAtMs = new Map<string, number>();
  readonly #sweeping: ReturnType<typeof setInterval>;

  /** Opens the service and removes uploads of an earlier process. */
  static async open(deps: ImportDeps): Promise<Imports> {
    for await (const { name } of Deno.readDir(deps.folder)) {
      await Deno.remove(join(deps.folder, name), { recursive: true });
    }
    return new Imports(deps);
  }

  private constructor(deps: ImportDeps) {
    this.#deps = deps;
    this.sources = new ImportSources(deps);
    this.#sweeping = setInterval(() => this.#sweep(), SWEEP_MS);
    deps.jobs.register(IMPORT, {
      parallel: 1,
      resumable: false,
      run: (context) => this.#run(context),
      discard: (params) => this.#forget((params as ImportParams).uploadId),
    });
  }

  /**
   * Stores an upload while it arrives and starts its import.
   *
   * @param keepsSource Stores the file for 30 days after its import.
   * @throws {AppError} Errors of `body`; `storage_full`
   */
  async upload(
    request: ImportRequest,
    body: AsyncIterable<Uint8Array>,
    keepsSource = false,
  ): Promise<JobSnapshot> {
    const uploadId = createUuidV7();
    const path = this.#getPath(uploadId);
    this.#usedAtMs.set(uploadId, this.#deps.now());
    try {
      await writePieces(path, body);
    } catch (error) {
      await this.#forget(uploadId);
      throw error;
    }
    return await this.#start({ ...request, uploadId, keepsSource });
  }

  /** Imports an upload after its dry run. @throws {AppError} `not_found` */
  async resumeJob(request: ImportRequest, uploadId: string, keepsSource = false): Promise<JobSnapshot> {
    if (!this.#usedAtMs.has(uploadId)) {
      throw new AppError("not_found", `The upload "${uploadId}" has expired. Send the file again`);
    }
    this.#usedAtMs.set(uploadId, this.#deps.now());
    return await this.#start({ ...request, uploadId, keepsSource });
  }

  /** Reads a stored file again. What it imported is updated or skipped. @throws {AppError} `not_found` */
  async readAgain(request: ImportRequest, sourceId: string): Promise<JobSnapshot> {
    const { name } = await this.sources.get(sourceId);
    return await this.#start({ ...request, name, uploadId: createUuidV7(), sourceId });
  }

  /** Imports a folder or file of this machine without a job. @throws {AppError} If the import fails */
  async importPath(
    request: ImportRequest & { path: string; signal: AbortSignal; progress?: (done: number, total: number) => void },
  ): Promise<ImportReport> {
    const report = createReport(request.kind, request.isDryRun);
    let [done, total] = [0, 0];
    const scratch = join(this.#deps.folder, `${createUuidV7()}.parts`);
    const { sandbox, limits } = this.#deps;
    const steps = readImport(sandbox, { ...request, scratch, limits, begin: (files) => total = files });
    const queue = new ImportQueue(this.#deps, report, request.signal);
    try {
      for await (const step of steps) {
        request.signal.throwIfAborted();
        await queue.take(step);
        request.progress?.(Math.min(++done, total), total);
      }
    } finally {
      await queue.finish();
    }
    return report;
  }

  /** Stops the timer. The job runner ends the jobs. */
  close(): void {
    clearInterval(this.#sweeping);
  }

  async #start(params: ImportParams): Promise<JobSnapshot> {
    const { kind, isDryRun, uploadId, sourceId } = params;
    const title = isDryRun ? "Import preview" : TITLES[kind];
    return await this.#deps.jobs.start(IMPORT, { title, params, key: sourceId ?? uploadId });
  }

  async #run({ params, signal, progress, detail }: JobContext): Promise<void> {
    const { uploadId, sourceId, keepsSource, ...request } = params as ImportParams;
    const path = this.#getPath(uploadId);
    let isKept = false;
    try {
      if (sourceId !== undefined) await writePieces(path, this.sources.read(sourceId, signal));
      const report = await this.importPath({
        ...request,
        signal,
        path,
        progress: (done, total) => progress({ done, total, unit: "files" }),
      });
      isKept = request.isDryRun && sourceId === undefined;
      if (isKept) {
        report.upload_id = uploadId;
        this.#usedAtMs.set(uploadId, this.#deps.now());
      } else if (sourceId !== undefined) {
        report.source_id = sourceId;
      } else if (keepsSource) {
        await this.#keepSource(report, path, { ...request, signal });
      }
      detail(report);
    } finally {
      if (!isKept) await this.#forget(uploadId);
    }
  }

  /** Stores the file of an import, which is done whether that succeeds or not. */
  async #keepSource(
    report: ImportReport,
    path: string,
    request: ImportRequest & { signal: AbortSignal },
  ): Promise<void> {
    try {
      report.source_id = await this.sources.add(path, request);
    } catch (error) {
      request.signal.throwIfAborted();
      if (!(error instanceof AppError) || error.code !== "storage_full") throw error;
      addLine(report, { level: "left_out", source: request.name ?? "", ...importReason("source_not_kept") });
    }
  }

  #sweep(): void {
    for (const [id, usedAtMs] of this.#usedAtMs) {
      const isAtWork = this.#deps.jobs.list().some(({ key, state }) =>
        key === id && (state === "queued" || state === "running")
      );
      if (!isAtWork && usedAtMs + RETENTION_MS < this.#deps.now()) void this.#forget(id).catch(() => {});
    }
  }

  async #forget(uploadId: string): Promise<void> {
    this.#usedAtMs.delete(uploadId);
    await Deno.remove(this.#getPath(uploadId)).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
  }

  #getPath(uploadId: string): string {
    return join(this.#deps.folder, uploadId);
  }
}
