/** Where llama.cpp's server lies on this machine, how one gets it, and the command line for a model. */
import { basename } from "node:path";
import { AppError } from "../../errors.ts";
import { findOnPath, isFile } from "../../process/find_program.ts";

/** How a model is to be run. */
export interface LlamaOptions {
  modelPath: string;
  /** Vision projector that belongs to the model. */
  projectorPath?: string;
  port: number;
  contextSize: number;
  /** Layers for the graphics card; llama.cpp decides where it is left out. */
  gpuLayers?: number;
}

const PROGRAM = "llama-server";

/** Where to get the program, in one sentence. */
export const HOW_TO_GET =
  "Install llama.cpp (macOS and Linux: brew install llama.cpp, Windows: winget install llama.cpp, or a build from " +
  "https://github.com/ggml-org/llama.cpp/releases), or set llama_server_path to its llama-server";

/**
 * Finds the program: the configured one, else the first on PATH.
 *
 * @param configured `llama_server_path`
 * @returns Its path; `undefined` when there is none.
 */
export async function findLlamaServer(configured: string | null): Promise<string | undefined> {
  if (configured !== null) return await isFile(configured) ? configured : undefined;
  return await findOnPath(PROGRAM);
}

/** The error of asking for a program that is not there. */
export function notFound(configured: string | null): AppError {
  const where = configured === null ? `${PROGRAM} is not on PATH` : `there is no file "${configured}"`;
  return new AppError("not_available", `Can't run the model: ${where}. ${HOW_TO_GET}`);
}

/** Gives the arguments for a model. The key goes by the environment: arguments are for every user of the machine to read. */
export function llamaArguments(options: LlamaOptions): string[] {
  const { modelPath, projectorPath, port, contextSize, gpuLayers } = options;
  return [
    ...["--model", modelPath],
    ...projectorPath === undefined ? [] : ["--mmproj", projectorPath],
    ...["--alias", basename(modelPath), "--host", "127.0.0.1", "--port", String(port)],
    // One slot has the whole context, and keeps the conversation's prefix between turns.
    ...["--ctx-size", String(contextSize), "--parallel", "1"],
    ...gpuLayers === undefined ? [] : ["--n-gpu-layers", String(gpuLayers)],
  ];
}

/** Gives the command that a person types to run a model, as a shell takes it. */
export function llamaCommand(program: string | undefined, options: LlamaOptions): string {
  return [program ?? PROGRAM, ...llamaArguments(options)].map(quoted).join(" ");
}

function quoted(word: string): string {
  if (/^[A-Za-z0-9_./:=@%+-]+$/.test(word)) return word;
  return Deno.build.os === "windows" ? `"${word}"` : `'${word.replaceAll("'", "'\\''")}'`;
}
