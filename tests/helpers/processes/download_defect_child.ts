/** A process whose download meets a defect in its Worker: settings that the Worker can't be made from. */
import { createLog } from "../../../services/log.ts";
import { Transfer } from "../../../services/models/downloads/download_job.ts";

const log = createLog({ level: "warn", asJson: true, write: (line) => console.error(line), now: Date.now });
const settings = { policy: { allow: ["no network"], exactOrigins: [] }, idleMs: 1000 };
await using transfer = new Transfer(settings, new AbortController().signal, log);
const target = { path: "/nowhere/0.part", sizeBytes: 1, hash: "sha256" } as const;
await transfer.open(target, () => {}).catch(({ code, message }) => console.log(`${code}: ${message}`));
