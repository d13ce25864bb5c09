/** The name of a preset, and what it is used for: by default, for models, for one chat. */
import { BUILTIN_PRESET_ID } from "../../api/presets.ts";
import { TextField } from "../../components/forms/Field.tsx";
import { Switch } from "../../components/forms/Switch.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { CardWordLists } from "../character_editor/fields.tsx";
import { ChatPicker } from "../documents/ChatPicker.tsx";
import type { PresetSectionProps } from "./PresetsPage.tsx";

/** The form. */
export function PresetUsage({ editor, isReadOnly }: PresetSectionProps) {
  const store = useStore();
  const t = texts.presets;
  const { name, models } = editor.data.value!;
  const settings = store.preferences.settings.value;
  const isDefault = (settings?.preset_id ?? BUILTIN_PRESET_ID) === editor.id;
  const setDefault = (isOn: boolean) => {
    const preset_id = isOn && !isReadOnly ? editor.id : null;
    store.preferences.change({ preset_id }).catch((thrown) => store.report(thrown));
  };
  return (
    <div class="form">
      {!isReadOnly && (
        <TextField
          label={t.fields.name}
          value={name}
          maxLength={200}
          isRequired
          error={editor.isIncomplete.value ? t.nameless : undefined}
          onInput={(typed) => editor.set({ name: typed })}
        />
      )}
      <p class="hint">{t.use.intro}</p>
      <Switch
        label={t.setDefault}
        isOn={isDefault}
        isDisabled={!settings || (isReadOnly && isDefault)}
        onChange={setDefault}
      />
      {!isReadOnly && (
        <CardWordLists
          label={t.use.models}
          hint={t.use.modelsHint}
          between="lines"
          words={models}
          onChange={(changed) => editor.set({ models: changed })}
        />
      )}
      <ChatPicker
        label={t.use.chat}
        none={t.use.noChat}
        linkLabel={t.use.pinned}
        failed={t.use.chatFailed}
        isLinked={({ preset_id }) => preset_id === editor.id}
        changesFor={(_, isOn) => ({ preset_id: isOn ? editor.id : null })}
      />
    </div>
  );
}
