/** Applies servers and settings of an export. Existing choices stay; only defaults are replaced. */
import type { BackendProfiles } from "../image_generation/backend_profiles.ts";
import type { Connections } from "../llm/connections/connections.ts";
import { DEFAULT_SETTINGS, type OwnerSettings, type Settings, type SettingsPatch } from "../settings/settings.ts";
import type { SpeechSettings } from "../speech/speech_settings.ts";
import type { ImportedConnection, ImportedImageConnection, ImportedSettings } from "./import_item.ts";
import type { WriteResult } from "./import_writer.ts";

/** Adds a connection. @throws {AppError} `invalid_request`, `address_not_allowed` */
export async function importConnection(
  connections: Connections,
  { id, profile, hadKey, isActive }: ImportedConnection,
  isDryRun: boolean,
): Promise<WriteResult> {
  if (isDryRun) {
    connections.getUnsavedTarget(profile);
    return added(hadKey);
  }
  const before = connections.findActive();
  await connections.put({ ...profile, id });
  // The demo connection doesn't count as a choice.
  if (isActive && (before === undefined || before.kind === "demo")) await connections.activate(id);
  return added(hadKey);
}

/** @throws {AppError} `invalid_request`, `address_not_allowed` */
export async function importImageConnection(
  profiles: BackendProfiles,
  { id, profile, hadKey, isActive }: ImportedImageConnection,
  isDryRun: boolean,
): Promise<WriteResult> {
  if (isDryRun) {
    profiles.getUnsavedTarget(profile);
    return added(hadKey);
  }
  const isChosen = profiles.list().some((one) => one.isActive);
  await profiles.put({ ...profile, id });
  if (isActive && !isChosen) await profiles.activate(id);
  return added(hadKey);
}

/** Applies settings. @throws {AppError} `invalid_request`, `address_not_allowed` */
export async function importSettings(
  parts: { settings: Settings; speech: SpeechSettings },
  item: ImportedSettings,
  isDryRun: boolean,
): Promise<WriteResult> {
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

function added(hadKey: boolean): WriteResult {
  return { state: "added", ...(hadKey && { reason: "enter_key" }) };
}
