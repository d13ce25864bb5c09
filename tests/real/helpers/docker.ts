/** A Docker Engine for the tests, by `tests/real/tools/container.sh`. */
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("../tools/container.sh", import.meta.url));
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** Output of a command. */
export interface DockerAnswer {
  code: number;
  stdout: string;
  stderr: string;
}

/** One engine. */
export interface Docker {
  /** Builds an image, of the repository unless a context is given. @throws {Error} with the engine's output if that fails */
  build(tag: string, args: string[], context?: string): Promise<void>;
  /** Runs a docker command. */
  run(...args: string[]): Promise<DockerAnswer>;
  /** Runs a command that must succeed and returns its output. @throws {Error} with its output */
  must(...args: string[]): Promise<string>;
}

/** Opens the engine in a folder. */
export function openDocker(folder: string): Docker {
  const script = async (...args: string[]): Promise<DockerAnswer> => {
    const { code, stdout, stderr } = await new Deno.Command("bash", { args: [SCRIPT, ...args], cwd: ROOT }).output();
    return { code, stdout: new TextDecoder().decode(stdout), stderr: new TextDecoder().decode(stderr) };
  };
  const succeed = async (...args: string[]) => {
    const { code, stdout, stderr } = await script(...args);
    if (code !== 0) throw new Error(`container.sh ${args.join(" ")} failed:\n${stdout}\n${stderr}`);
    return stdout;
  };
  return {
    build: async (tag, args, context = ROOT) => void await succeed("build", folder, context, tag, ...args),
    run: (...args) => script("docker", folder, ...args),
    must: (...args) => succeed("docker", folder, ...args),
  };
}
