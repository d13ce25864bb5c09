/** Runs yt-dlp with strict limits (docs/protocols/tts.md#yt-dlp). */
import { join } from "node:path";
import { AppError } from "../errors.ts";
import { findOnPath } from "../process/find_program.ts";
import { runChildGroup } from "../process/process_group.ts";

/** What one download takes. */
export interface YtDlpOptions {
  /** Path of the program; by default found on PATH. */
  program: string | undefined;
  /** The guard's proxy with its password: the only way out. */
  proxyUrl: string;
  /** An empty folder for this download alone. */
  folder: string;
  url: URL;
  /** Seconds into the recording. */
  startS: number;
  lengthS: number;
  signal: AbortSignal;
  /** Told how much of the recording has come. @param total `null` where nobody knows. */
  onProgress(done: number, total: number | null): void;
}

/** Older ones let a page choose a file's ending (GHSA-79w7-vh3h-8g4j). */
const OLDEST_SAFE = "2024.07.01";
const VERSION_MS = 20_000;
const DOWNLOAD_MS = 180_000;
const MAX_OUTPUT_BYTES = 256 * 1024;
const MAX_FOLDER_BYTES = 300 * 1024 * 1024;
const MAX_FILE = "50M";
/** A recording of hours is downloaded whole before a piece is cut out of it. */
const MAX_RECORDING_S = 7200;
/** What it is told to say of its progress on stdout, between the lines it is asked for; `NA` where it does not know. */
const PROGRESS_TEMPLATE =
  "download:progress %(progress.downloaded_bytes)s %(progress.total_bytes)s %(progress.total_bytes_estimate)s";
const PROGRESS = /^progress (\d{1,15}) (?:(\d{1,15})|NA) (?:([\d.]{1,20})|NA)$/;
const HOW_TO_GET = "install yt-dlp and ffmpeg, or set yt_dlp_path";

/**
 * Downloads a page's recording as a mono WAV file.
 *
 * @returns Path of the one file, inside `folder`.
 * @throws {AppError} `not_available` when the program is missing or too old, `unprocessable` when it found nothing or broke a
 *   limit; the reason of `signal`.
 */
export async function downloadRecording(options: YtDlpOptions): Promise<string> {
  const { folder, signal, onProgress } = options;
  const program = options.program ?? await findOnPath("yt-dlp");
  if (program === undefined) {
    throw new AppError("not_available", `Cannot import from a page: yt-dlp was not found; ${HOW_TO_GET}`);
  }
  const run = (args: readonly string[], timeoutMs: number) =>
    runChildGroup({
      ...{ program, args, folder, env: environment(options), timeoutMs, signal },
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
      `Cannot import from a page: "${program}" is ${
        found ?? "of unknown version"
      }, and ${OLDEST_SAFE} is the oldest safe one`,
    );
  }
  const { code, stdout, stderr } = await run(argumentsOf(options), DOWNLOAD_MS);
  const paths = stdout.split("\n").map((line) => line.trim()).filter((line) => line !== "" && !PROGRESS.test(line));
  if (code !== 0 || paths.length !== 1) throw nothingFound(options.url, stderr);
  if (paths[0] !== join(folder, "sample.wav")) throw nothingFound(options.url, "");
  return paths[0];
}

/** docs/protocols/tts.md#yt-dlp explains each option. No shell; the URL comes after `--`. */
function argumentsOf({ proxyUrl, folder, url, startS, lengthS }: YtDlpOptions): string[] {
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

/** Nothing of the owner's: no home, no configuration, no proxy but the guard. */
function environment({ proxyUrl, folder }: YtDlpOptions): Record<string, string> {
  const path = Deno.env.get("PATH") ?? "/usr/local/bin:/usr/bin:/bin";
  const proxies = ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
  return {
    ...{ PATH: path, HOME: folder, TMPDIR: folder, XDG_CONFIG_HOME: folder, XDG_CACHE_HOME: folder, LANG: "C.UTF-8" },
    ...{ PYTHONDONTWRITEBYTECODE: "1", no_proxy: "", NO_PROXY: "" },
    ...Object.fromEntries(proxies.map((name) => [name, proxyUrl])),
  };
}

/** What it says of itself may hold paths and a page's own words: only the kind of failure is told on. */
function nothingFound(url: URL, stderr: string): AppError {
  const line = stderr.split("\n").findLast((candidate) => candidate.startsWith("ERROR:")) ?? "";
  const finding = /unsupported url|no suitable extractor/i.test(line)
    ? "the page holds no recording it knows how to get"
    : /ffmpeg|ffprobe/i.test(line)
    ? "ffmpeg is missing or could not convert it"
    : /403|forbidden|sign in|login|private/i.test(line)
    ? "the site refuses it without a sign-in"
    : /404|not found|unavailable|removed/i.test(line)
    ? "the recording is not there"
    : "no recording came out that is short enough and not live";
  return new AppError("unprocessable", `Cannot import from "${url.host}": ${finding}`);
}
