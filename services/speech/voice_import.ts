/**
 * Imports voice samples from URLs: audio files through the guard, and recordings on web pages with yt-dlp, which runs
 * with strict limits (docs/protocols/tts.md, "yt-dlp").
 */
import { join } from "node:path";
import { AppError } from "../errors.ts";
import type { JobContext, JobRunner } from "../jobs/job_runner.ts";
import type { Guard } from "../http/guard/guarded_fetch.ts";
import { bytesToSniff, SIGNATURE_BYTES, sniffAudio } from "./audio_format.ts";
import { SAMPLE_FORMATS, type VoiceSample, type VoiceSamples } from "./voice_samples.ts";
import { findOnPath } from "../process/supervised_process.ts";
import { runChildGroup } from "../process/process_group.ts";

/** A request for an import. */
export interface VoiceImportRequest {
  url: string;
  name: string;
  description: string;
  /** Start of the sample in the recording, in seconds. Default: the start of the recording. */
  startS?: number;
  endS?: number;
}

/** The dependencies of imports. */
export interface VoiceImportsDeps {
  jobs: JobRunner;
  guard: Guard;
  samples: VoiceSamples;
  /** Temporary folder of imports. Its content is deleted at startup. */
  folder: string;
  ytDlpPath: string | undefined;
}

/** Kind of job. */
const VOICE_IMPORT = "voice_import";

const MAX_URL = 2048;
const MAX_BYTES = 50 * 1024 * 1024;
/** Maximum length of a sample from a recording. */
const MAX_SAMPLE_S = 120;
const DEFAULT_SAMPLE_S = 60;
/** Number of concurrent imports. Each may convert a whole recording. */
const PARALLEL = 1;

/** Imports as jobs, which continue when the client disconnects. */
export class VoiceImports {
  readonly #options: VoiceImportsDeps;
  /** Results of jobs that a client waits for. */
  readonly #results = new Map<string, VoiceSample>();

  /** Opens the imports. Deletes leftovers of an earlier process in their folder. */
  static async open(options: VoiceImportsDeps): Promise<VoiceImports> {
    for await (const { name } of Deno.readDir(options.folder)) {
      await Deno.remove(join(options.folder, name), { recursive: true });
    }
    return new VoiceImports(options);
  }

  private constructor(options: VoiceImportsDeps) {
    this.#options = options;
    options.jobs.register(VOICE_IMPORT, {
      parallel: PARALLEL,
      resumable: false,
      run: async (context) => {
        const sample = await this.#run(context);
        this.#results.set(context.id, sample);
      },
    });
  }

  /**
   * Starts an import.
   *
   * @returns The job's id, and a promise of the sample that fails with the job's error.
   * @throws {AppError} `invalid_request` if the URL isn't http or https
   */
  async start(request: VoiceImportRequest): Promise<{ jobId: string; sample: Promise<VoiceSample> }> {
    const url = parseAddress(request.url);
    checkRange(request);
    const { jobs } = this.#options;
    const job = await jobs.start(VOICE_IMPORT, { title: request.name, params: { ...request, url: url.href } });
    return { jobId: job.id, sample: this.#waitForSample(job.id) };
  }

  async #waitForSample(jobId: string): Promise<VoiceSample> {
    try {
      const ended = await this.#options.jobs.ended(jobId);
      const sample = this.#results.get(jobId);
      if (sample !== undefined) return sample;
      const { code, message } = ended.error ?? { code: "conflict" as const, message: "The import was canceled" };
      throw new AppError(code, message);
    } finally {
      this.#results.delete(jobId);
    }
  }

  async #run({ params, signal, progress }: JobContext): Promise<VoiceSample> {
    const request = params as VoiceImportRequest;
    const url = parseAddress(request.url);
    const isWhole = request.startS === undefined && request.endS === undefined;
    const direct = isWhole ? await this.#fetchAudio(url, signal, progress) : undefined;
    const audio = direct ?? await this.#download(url, request, signal, progress);
    signal.throwIfAborted();
    return await this.#options.samples.add({ name: request.name, description: request.description, audio });
  }

  /** Downloads the URL if it's an audio file; otherwise returns `undefined`. */
  async #fetchAudio(
    url: URL,
    signal: AbortSignal,
    progress: JobContext["progress"],
  ): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const response = await this.#options.guard.fetch(url, { maxBytes: MAX_BYTES, signal });
    const total = Number(response.headers.get("content-length")) || null;
    const reader = response.body?.getReader();
    const parts: Uint8Array<ArrayBuffer>[] = [];
    let size = 0;
    let isAudio = false;
    let enough = SIGNATURE_BYTES;
    for (;;) {
      const { done, value } = await (reader?.read() ?? { done: true as const, value: undefined });
      if (done) break;
      parts.push(value as Uint8Array<ArrayBuffer>);
      size += value.length;
      if (isAudio) progress({ done: size, total, unit: "bytes" });
      if (isAudio || size < enough) continue;
      const head = new Uint8Array(await new Blob(parts).arrayBuffer());
      enough = bytesToSniff(head);
      if (size < enough) continue;
      const format = sniffAudio(head);
      isAudio = response.ok && format !== undefined && SAMPLE_FORMATS.includes(format);
      if (!isAudio) break;
    }
    if (isAudio) return new Uint8Array(await new Blob(parts).arrayBuffer());
    await reader?.cancel().catch(() => {});
    return undefined;
  }

  async #download(
    url: URL,
    request: VoiceImportRequest,
    signal: AbortSignal,
    progress: JobContext["progress"],
  ): Promise<Uint8Array<ArrayBuffer>> {
    const { guard, folder, ytDlpPath } = this.#options;
    const own = await Deno.makeTempDir({ dir: folder, prefix: "import-" });
    try {
      await Deno.chmod(own, 0o700);
      const startS = request.startS ?? 0;
      const lengthS = Math.min(MAX_SAMPLE_S, request.endS === undefined ? DEFAULT_SAMPLE_S : request.endS - startS);
      const path = await downloadRecording({
        program: ytDlpPath,
        proxyUrl: guard.proxyUrl,
        folder: own,
        url,
        startS,
        lengthS,
        signal,
        onProgress: (done, total) => progress({ done, total, unit: "bytes" }),
      });
      const { isFile, isSymlink, size } = await Deno.lstat(path);
      const names = await Array.fromAsync(Deno.readDir(own), (entry) => entry.name);
      if (!isFile || isSymlink || size > MAX_BYTES || !names.includes("sample.wav")) {
        throw new AppError("unprocessable", `Can't import from "${url.host}": the result isn't a regular file`);
      }
      const audio = await Deno.readFile(join(own, "sample.wav"));
      if (sniffAudio(audio) !== "wav") {
        throw new AppError("unprocessable", `Can't import from "${url.host}": the result isn't audio`);
      }
      return audio;
    } finally {
      await Deno.remove(own, { recursive: true }).catch(() => {});
    }
  }
}

/** Parses the URL once. The fragment is removed, because yt-dlp reads options from it. */
function parseAddress(text: string): URL {
  const trimmed = text.trim();
  // deno-lint-ignore no-control-regex -- those are what is looked for
  const isInvalid = trimmed.length > MAX_URL || /[\u0000-\u0020\u007f]/.test(trimmed) || !URL.canParse(trimmed);
  const url = isInvalid ? undefined : new URL(trimmed);
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw new AppError("invalid_request", "Can't import from this address: it isn't an http or https URL", {
      issues: [{
        path: "url",
        message: "must be an http or https URL without credentials, with at most 2048 characters",
      }],
    });
  }
  url.hash = "";
  return url;
}

function checkRange({ startS = 0, endS }: VoiceImportRequest): void {
  if (endS === undefined || endS > startS) return;
  const message = "the end must be after the start";
  throw new AppError("invalid_request", `Can't import the sample: ${message}`, {
    issues: [{ path: "end_s", message }],
  });
}

/** Options of one download. */
interface YtDlpOptions {
  /** Path of the program. Default: the one on PATH. */
  program: string | undefined;
  /** URL of the guard's proxy, the only network access. */
  proxyUrl: string;
  /** An empty folder for this download. */
  folder: string;
  url: URL;
  /** Offset in the recording, in seconds. */
  startS: number;
  lengthS: number;
  signal: AbortSignal;
  /** @param total `null` if unknown. */
  onProgress(done: number, total: number | null): void;
}

/** Minimum version. Older ones let a page choose file extensions (GHSA-79w7-vh3h-8g4j). */
const OLDEST_SAFE = "2024.07.01";
const VERSION_MS = 20_000;
const DOWNLOAD_MS = 180_000;
const MAX_OUTPUT_BYTES = 256 * 1024;
const MAX_FOLDER_BYTES = 300 * 1024 * 1024;
const MAX_FILE = "50M";
/** Maximum length of a recording. yt-dlp downloads all of it before it extracts the sample. */
const MAX_RECORDING_S = 7200;
/** Format of progress lines on stdout. Unknown values are `NA`. */
const PROGRESS_TEMPLATE =
  "download:progress %(progress.downloaded_bytes)s %(progress.total_bytes)s %(progress.total_bytes_estimate)s";
const PROGRESS = /^progress (\d{1,15}) (?:(\d{1,15})|NA) (?:([\d.]{1,20})|NA)$/;
const HOW_TO_GET = "install yt-dlp and ffmpeg, or set yt_dlp_path";

/**
 * Downloads a page's recording as a mono WAV file.
 *
 * @returns Path of the file in `folder`.
 * @throws {AppError} `not_available` if the program is missing or too old; `unprocessable` if it found nothing or
 *   exceeded a limit; the abort reason of `signal`
 */
async function downloadRecording(options: YtDlpOptions): Promise<string> {
  const { folder, signal, onProgress } = options;
  const program = options.program ?? await findOnPath("yt-dlp");
  if (program === undefined) {
    throw new AppError(
      "not_available",
      `Can't import from a web page: yt-dlp wasn't found. To fix this, ${HOW_TO_GET}`,
    );
  }
  const run = (args: readonly string[], timeoutMs: number) =>
    runChildGroup({
      program,
      args,
      folder,
      env: createEnvironment(options),
      timeoutMs,
      signal,
      maxOutputBytes: MAX_OUTPUT_BYTES,
      maxFolderBytes: MAX_FOLDER_BYTES,
      onLine(line) {
        const [, done, total, estimate] = PROGRESS.exec(line) ?? [];
        if (done !== undefined) onProgress(Number(done), Math.round(Number(total ?? estimate ?? 0)) || null);
      },
    });
  const version = await run(["--ignore-config", "--no-plugin-dirs", "--version"], VERSION_MS);
  const found = /^\d{4}\.\d{2}\.\d{2}/.exec(version.stdout.trim())?.[0];
  if (found === undefined || found < OLDEST_SAFE) {
    throw new AppError(
      "not_available",
      `Can't import from a web page: "${program}" is version ${
        found ?? "unknown"
      }, but at least ${OLDEST_SAFE} is required`,
    );
  }
  const { code, stdout, stderr } = await run(createArguments(options), DOWNLOAD_MS);
  const paths = stdout.split("\n").map((line) => line.trim()).filter((line) => line !== "" && !PROGRESS.test(line));
  if (code !== 0 || paths.length !== 1) throw createDownloadError(options.url, stderr);
  if (paths[0] !== join(folder, "sample.wav")) throw createDownloadError(options.url, "");
  return paths[0];
}

/**
 * Returns the arguments; docs/protocols/tts.md#yt-dlp explains each. There is no shell, and the URL comes after `--`.
 */
function createArguments({ proxyUrl, folder, url, startS, lengthS }: YtDlpOptions): string[] {
  const cut = `ExtractAudio:-ac 1 -ar 24000 -ss ${startS} -t ${lengthS} -map_metadata -1`;
  return [
    ...["--ignore-config", "--no-plugin-dirs", "--no-cache-dir", "--no-update", "--no-warnings"],
    ...["--progress", "--newline", "--progress-delta", "0.5", "--progress-template", PROGRESS_TEMPLATE],
    ...["--no-exec", "--no-playlist", "-I", "1", "--no-cookies", "--no-mtime"],
    ...["--proxy", proxyUrl, "--socket-timeout", "15", "--retries", "2"],
    ...["--extractor-retries", "1", "--fragment-retries", "2"],
    ...["--max-filesize", MAX_FILE, "--match-filters", `!is_live & duration<=?${MAX_RECORDING_S}`],
    ...["-f", "ba/b", "-x", "--audio-format", "wav", "--postprocessor-args", cut],
    ...["-P", `home:${folder}`, "-P", `temp:${folder}`, "-o", "sample.%(ext)s", "--print", "after_move:filepath"],
    ...["--", url.href],
  ];
}

/** Creates the environment: no home folder, no configuration, no network except the guard. */
function createEnvironment({ proxyUrl, folder }: YtDlpOptions): Record<string, string> {
  const path = Deno.env.get("PATH") ?? "/usr/local/bin:/usr/bin:/bin";
  const proxies = ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
  return {
    PATH: path,
    HOME: folder,
    TMPDIR: folder,
    XDG_CONFIG_HOME: folder,
    XDG_CACHE_HOME: folder,
    LANG: "C.UTF-8",
    PYTHONDONTWRITEBYTECODE: "1",
    no_proxy: "",
    NO_PROXY: "",
    ...Object.fromEntries(proxies.map((name) => [name, proxyUrl])),
  };
}

/** Creates the error for a failed download. stderr may contain paths and text of the page, so only the kind of failure is used. */
function createDownloadError(url: URL, stderr: string): AppError {
  const line = stderr.split("\n").findLast((candidate) => candidate.startsWith("ERROR:")) ?? "";
  const finding = /unsupported url|no suitable extractor/i.test(line)
    ? "yt-dlp doesn't support this page"
    : /ffmpeg|ffprobe/i.test(line)
    ? "ffmpeg is missing or failed to convert it"
    : /403|forbidden|sign in|login|private/i.test(line)
    ? "the site requires a sign-in"
    : /404|not found|unavailable|removed/i.test(line)
    ? "the recording doesn't exist"
    : "there is no recording that is short enough and not live";
  return new AppError("unprocessable", `Can't import from "${url.host}": ${finding}`);
}
