/** A process whose download meets a defect in its Worker: settings that the Worker can't be made from. */
import { Transfer } from "../../../services/models/downloads/download_job.ts";

const settings = { policy: { allow: ["no network"], exactOrigins: [] }, idleMs: 1000 };
await using transfer = new Transfer(settings, new AbortController().signal);
const target = { path: "/nowhere/0.part", sizeBytes: 1, hash: "sha256" } as const;
await transfer.open(target, () => {}).catch(({ code, message }) => console.log(`${code}: ${message}`));
