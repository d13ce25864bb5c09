/** The log: services write to standard error through it only. */

/** Severities, from least to most severe. */
const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
/** Severity of a line. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Writes a line if it's severe enough. Fields never contain secrets, content or conversation IDs. */
export interface Log {
  (level: LogLevel, message: string, fields?: Record<string, unknown>): void;
}

/**
 * Creates a log.
 *
 * @param options.asJson Writes one JSON object per line; otherwise text for a terminal.
 * @param options.write Receives one line without its line break.
 */
export function createLog(
  options: { level: LogLevel; asJson: boolean; write(line: string): void; now(): number },
): Log {
  const least = LOG_LEVELS.indexOf(options.level);
  return (level, message, fields = {}) => {
    if (LOG_LEVELS.indexOf(level) < least) return;
    const time = new Date(options.now()).toISOString();
    if (options.asJson) {
      options.write(JSON.stringify({ time, level, message, ...fields }));
      return;
    }
    const pairs = Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => `${key}=${JSON.stringify(value)}`);
    options.write([time, level.padEnd(5), message, ...pairs].join(" "));
  };
}

const encoder = new TextEncoder();

/** Writes a line to standard output or error; console.error takes four times as long, at every request. */
export function writeLine(line: string, to: { writeSync(bytes: Uint8Array): number } = Deno.stderr): void {
  const bytes = encoder.encode(`${line}\n`);
  try {
    for (let at = 0; at < bytes.length;) at += to.writeSync(bytes.subarray(at));
  } catch {
    // Nobody reads it any more; that is no reason to fail a request.
  }
}

/** Creates the log of this process: text on a terminal, otherwise JSON lines. */
export function createProcessLog(level: LogLevel): Log {
  return createLog({ level, asJson: !Deno.stderr.isTerminal(), write: (line) => writeLine(line), now: Date.now });
}
