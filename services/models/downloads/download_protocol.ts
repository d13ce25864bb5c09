/** What is said between a running download and its Worker. */
import type { ErrorCode } from "../../errors.ts";

/** How a file's bytes are checked. */
export type HashKind = "sha256" | "git-sha1";

/** Where calls may go; as the guard's own options. */
export interface TransferPolicy {
  allow: string[];
  exactOrigins: string[];
  /** PEM certificates trusted beside the runtime's own. */
  caCerts?: string[];
}

/** What one file is to become. */
export interface TransferTarget {
  /** The part file. */
  path: string;
  sizeBytes: number;
  hash: HashKind;
}

/** What the Worker is asked; it answers each with one report, `progress` aside. */
export type TransferOrder =
  | { kind: "open"; target: TransferTarget }
  /** Goes on where the part file ends; `restart` begins anew. */
  | { kind: "get"; url: string; headers: Record<string, string>; etag?: string; restart: boolean }
  | { kind: "finish" }
  /** Hashes a file that is there. */
  | { kind: "hash"; target: TransferTarget }
  /** Ends what is under way; the answer is that of the order it ends. */
  | { kind: "abort" };

/** Settings that hold for a Worker's life. */
export interface TransferSettings {
  policy: TransferPolicy;
  /** Longest wait for the next byte. */
  idleMs: number;
}

/** How a try to get bytes ended. */
export interface TransferEnd {
  kind: "ended";
  /** What the part file holds now. */
  bytes: number;
  /** True when what it held before had to go. */
  isRestarted: boolean;
  /** Of the answer, where it is a strong one; absent when there was no answer. */
  etag?: string;
  /**
   * `whole`: all bytes are there. `cut`: the connection ended or fell silent. `stale`: the server's file is another than
   * the part's. `wrong-size`: it is longer or shorter than the hub says. `unusable`: asking again would bring the same.
   */
  outcome: "whole" | "cut" | "stale" | "wrong-size" | "unusable";
  message: string;
}

/** What the Worker tells. */
export type TransferReport =
  | { kind: "opened"; bytes: number }
  | { kind: "progress"; bytes: number }
  | TransferEnd
  /** The server answered without bytes. */
  | { kind: "answer"; status: number; headers: Record<string, string> }
  | { kind: "hashed"; hash: string; bytes: number }
  | { kind: "failed"; code: ErrorCode; message: string };
