/** Runs doctor's look at the installation off the serving thread, then ends. Its other end is upkeep.ts. */
import { type DoctorConfig, examine } from "./doctor.ts";
import type { Finding } from "./finding.ts";
import { messageOf } from "../errors.ts";

/** What it is asked. */
export interface FindingsRequest {
  config: DoctorConfig;
  /** Where the server of this configuration is found from its own machine. */
  localUrl: string;
}

/** What it answers. */
export type FindingsAnswer = { findings: Finding[] } | { failure: string };

// A page has a window and a Worker has not: importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  self.onmessage = async ({ data }: MessageEvent<FindingsRequest>) => {
    let answer: FindingsAnswer;
    try {
      answer = { findings: await examine({ config: () => data.config, localUrl: () => data.localUrl }) };
    } catch (error) {
      answer = { failure: messageOf(error) };
    }
    self.postMessage(answer);
    self.close();
  };
}
