/** Puts servers and settings of an export in place. What was chosen here stands: only what nobody chose is filled in. */
import type { BackendProfiles } from "../image_generation/backend_profiles.ts";
import type { Connections } from "../llm/connections/connections.ts";
import { DEFAULT_SETTINGS, type OwnerSettings, type Settings, type SettingsPatch } from "../settings/settings.ts";
import type { SpeechSettings } from "../speech/speech_settings.ts";
import type { ImportedConnection, ImportedImageConnection, ImportedSettings } from "./import_item.ts";
import type { Landed } from "./import_writer.ts";

/** @throws {AppError} `invalid_request`, `address_not_allowed` */
export async function landConnection(
  connections: Connections,
  { id, profile, hadKey, isActive }: ImportedConnection,
  isDryRun: boolean,
): Promise<Landed> {
  if (isDryRun) {
    connections.getUnsavedTarget(profile);
    return added(hadKey);
  }
  const before = connections.findActive();
  await connections.put({ ...profile, id });
  // The demo is what stands in for a choice.
  if (isActive && (before === undefined || before.kind === "demo")) await connections.activate(id);
  return added(hadKey);
}

/** @throws {AppError} `invalid_request`, `address_not_allowed` */
export async function landImageConnection(
  profiles: BackendProfiles,
  { id, profile, hadKey, isActive }: ImportedImageConnection,
  isDryRun: boolean,
): Promise<Landed> {
  if (isDryRun) {
    profiles.getUnsavedTarget(profile);
    return added(hadKey);
  }
  const isChosen = profiles.list().some((one) => one.isActive);
  await profiles.put({ ...profile, id });
  if (isActive && !isChosen) await profiles.activate(id);
  return added(hadKey);
}

/** @throws {AppError} `invalid_request`, `address_not_allowed` */
export async function landSettings(
  parts: { settings: Settings; speech: SpeechSettings },
  item: ImportedSettings,
  isDryRun: boolean,
): Promise<Landed> {
  const now = parts.settings.get().settings;
  const patch = Object.fromEntries(
    Object.entries(item.settings).filter(([name, value]) => {
      const key = name as keyof OwnerSettings;
      return now[key] === DEFAULT_SETTINGS[key] && value !== now[key];
    }),
  ) as SettingsPatch;
  const speech = parts.speech.get().baseUrl === "" ? item.speech : undefined;
  const hasSettings = Object.keys(patch).length > 0;
  if (!hasSettings && speech === undefined) return { state: "present" };
  if (!isDryRun) {
    if (hasSettings) await parts.settings.patch(patch);
    if (speech !== undefined) await parts.speech.put(speech);
  }
  return added(speech !== undefined && item.hadSpeechKey);
}

function added(hadKey: boolean): Landed {
  return { state: "added", ...(hadKey && { reason: "enter_key" }) };
}
