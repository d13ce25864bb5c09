/** A process with uncaught errors, which reports after each that it is still running. */
import { containDefects } from "../../../services/process/process_events.ts";
import { createLog } from "../../../services/log.ts";

containDefects(createLog({ level: "error", asJson: true, write: (line) => console.error(line), now: Date.now }));
const nextTurn = () => new Promise((resolve) => setTimeout(resolve, 5));
setTimeout(() => {
  throw new Error("thrown in a timer");
});
await nextTurn();
console.log("alive");
Promise.reject(new Error("rejected and forgotten"));
await nextTurn();
console.log("alive");
Promise.reject("no error at all");
await nextTurn();
console.log("alive");
