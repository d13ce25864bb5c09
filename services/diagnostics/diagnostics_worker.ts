/** Runs the checks of `parlor doctor` off the serving thread, then ends. `data_report.ts` is its other side. */
import { type DoctorConfig, runDoctorChecks } from "./doctor.ts";
import type { Finding } from "./finding.ts";
import { getErrorMessage } from "../errors.ts";
import { reportDefects } from "../process/worker.ts";

/** The request. */
export interface FindingsRequest {
  config: DoctorConfig;
  backupPassphrase: string | undefined;
  /** How much to read; see `DoctorRequest`. */
  maxBytes: number;
}

/** The answer. */
export type FindingsResponse = { findings: Finding[] } | { failure: string };

// Only a Worker has DedicatedWorkerGlobalScope: importing this file elsewhere does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  reportDefects();
  self.onmessage = async ({ data }: MessageEvent<FindingsRequest>) => {
    let answer: FindingsResponse;
    try {
      const { config, ...rest } = data;
      answer = { findings: await runDoctorChecks({ readConfig: () => config, ...rest }) };
    } catch (error) {
      answer = { failure: getErrorMessage(error) };
    }
    self.postMessage(answer);
    self.close();
  };
}
