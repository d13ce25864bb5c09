/** Messages between a download and its Worker. */
import type { ErrorCode } from "../../errors.ts";

/** Hash by which a file is verified. */
export type HashKind = "sha256" | "git-sha1";

/** Addresses that the Worker may call, as in the options of the guard. */
export interface TransferPolicy {
  allow: string[];
  exactOrigins: string[];
  /** PEM certificates to trust besides those of the runtime. */
  caCerts?: string[];
}

/** A file to write or check. */
export interface TransferTarget {
  /** Path of the part file. */
  path: string;
  sizeBytes: number;
  hash: HashKind;
}

/** A request to the Worker. It answers each with one report, after any number of `progress`. */
export type TransferOrder =
  | { kind: "open"; target: TransferTarget }
  /** Resumes at the end of the part file; `restart` starts from nothing. */
  | { kind: "get"; url: string; headers: Record<string, string>; etag?: string; restart: boolean }
  | { kind: "finish" }
  /** Hashes an existing file. */
  | { kind: "hash"; target: TransferTarget }
  /** Aborts the current request, which then fails. Has no report of its own. */
  | { kind: "abort" };

/** First message to a Worker. */
export interface TransferSettings {
  policy: TransferPolicy;
  /** Longest wait for the next byte. */
  idleMs: number;
}

/** How a `get` ended. */
export interface TransferEnd {
  kind: "ended";
  /** Size of the part file. */
  bytes: number;
  /** The earlier content of the part file was dropped. */
  isRestarted: boolean;
  /** The strong ETag of the response. */
  etag?: string;
  /**
   * `whole`: complete. `cut`: the connection ended or timed out. `stale`: the file on the server is another one than that
   * of the part. `wrong-size`: longer or shorter than the hub says. `unusable`: trying again would give the same.
   */
  outcome: "whole" | "cut" | "stale" | "wrong-size" | "unusable";
  message: string;
}

/** A message from the Worker. */
export type TransferReport =
  | { kind: "opened"; bytes: number }
  | { kind: "progress"; bytes: number }
  | TransferEnd
  /** The server answered with another status than 200 and 206. */
  | { kind: "answer"; status: number; headers: Record<string, string> }
  | { kind: "hashed"; hash: string; bytes: number }
  | { kind: "failed"; code: ErrorCode; message: string }
  /** An error that nothing in the Worker caught, with its stack. The Worker is of no further use. */
  | { kind: "defect"; error: string };
