/** Runs yt-dlp to download recordings from web pages, with strict limits (docs/protocols/tts.md, "yt-dlp"). */
import { join } from "node:path";
import { AppError } from "../errors.ts";
import { findOnPath } from "../process/supervised_process.ts";
import { runChildGroup } from "../process/process_group.ts";

/** Options of one download. */
export interface YtDlpOptions {
  /** Path of the program. Default: found on PATH. */
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
  /** @param total Null if unknown. */
  onProgress(done: number, total: number | null): void;
}

/** Older versions let a page choose file extensions (GHSA-79w7-vh3h-8g4j). */
const OLDEST_SAFE = "2024.07.01";
const VERSION_MS = 20_000;
const DOWNLOAD_MS = 180_000;
const MAX_OUTPUT_BYTES = 256 * 1024;
const MAX_FOLDER_BYTES = 300 * 1024 * 1024;
const MAX_FILE = "50M";
/** yt-dlp downloads the whole recording before it cuts out the sample. */
const MAX_RECORDING_S = 7200;
/** Progress lines on stdout, between the printed path. Unknown values are `NA`. */
const PROGRESS_TEMPLATE =
  "download:progress %(progress.downloaded_bytes)s %(progress.total_bytes)s %(progress.total_bytes_estimate)s";
const PROGRESS = /^progress (\d{1,15}) (?:(\d{1,15})|NA) (?:([\d.]{1,20})|NA)$/;
const HOW_TO_GET = "install yt-dlp and ffmpeg, or set yt_dlp_path";

/**
 * Downloads a page's recording as a mono WAV file.
 *
 * @returns Path of the file in `folder`.
 * @throws {AppError} `not_available` if the program is missing or too old; `unprocessable` if it found nothing or exceeded a
 *   limit. The abort reason of `signal`.
 */
export async function downloadRecording(options: YtDlpOptions): Promise<string> {
  const { folder, signal, onProgress } = options;
  const program = options.program ?? await findOnPath("yt-dlp");
  if (program === undefined) {
    throw new AppError(
      "not_available",
      `Can't import from a web page: yt-dlp was not found. To fix this, ${HOW_TO_GET}.`,
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

/** docs/protocols/tts.md#yt-dlp explains each option. No shell; the URL comes after `--`. */
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

/** Creates the environment: no home folder, no configuration, no network but the guard. */
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
