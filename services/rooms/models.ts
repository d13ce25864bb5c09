/** Models that lie here or could, and running one. */
import { Models } from "../models/models.ts";
import type { Guard } from "../http/guard/guarded_fetch.ts";
import type { CloseHook } from "../async/lazy.ts";
import { type AnsweringRoom, LOCAL_CONNECTION } from "./answering.ts";
import { exactOriginsOf } from "./guard.ts";
import type { Ground } from "./ground.ts";

/** Opens the room. Downloads that an earlier process left go on. */
export function openModels(
  { config, jobs, events, log, folders }: Ground,
  rooms: { guard: Guard; answering: Pick<AnsweringRoom, "connections"> },
  onClose: (hook: CloseHook) => void,
): Models {
  const { guard, answering: { connections } } = rooms;
  const models = new Models({
    ...{ jobs, events, log, guard, guardAllow: config.guardAllow, guardExactOrigins: exactOriginsOf(config) },
    folder: folders.models,
    hubUrl: config.hubUrl,
    hubTokenFile: config.hubTokenFile,
    llamaServerPath: config.llamaServerPath,
    async offer({ name, activate, ...fields }) {
      await connections.put({ id: LOCAL_CONNECTION, name: `${name} (this machine)`, kind: "openai", ...fields });
      if (activate) await connections.activate(LOCAL_CONNECTION);
    },
  });
  onClose(() => models.runner.close());
  return models;
}
