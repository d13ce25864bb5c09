/** How messages of characters look, with a sample. */
import type { Settings } from "../../api/types.ts";
import { Select } from "../../components/forms/Select.tsx";
import { Switch } from "../../components/forms/Switch.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { BackgroundField } from "../chat/BackgroundField.tsx";

/** Part of the general settings. */
export function RoleplaySettings(
  { settings, onChange }: { settings: Settings; onChange: (changes: Partial<Settings>) => void },
) {
  const { preferences } = useStore();
  const t = texts.general.roleplay;
  return (
    <>
      <h3>{t.title}</h3>
      <div class="form">
        <Switch
          id="color-speech"
          label={t.colorSpeech}
          hint={t.colorSpeechHint}
          isOn={settings.color_speech}
          onChange={(color_speech) => onChange({ color_speech })}
        />
        <Switch
          id="dim-actions"
          label={t.dimActions}
          hint={t.dimActionsHint}
          isOn={settings.dim_actions}
          onChange={(dim_actions) => onChange({ dim_actions })}
        />
        <p class="prose sample of-character">
          <em>{t.sampleAction}</em> <span class="speech">{t.sampleSpeech}</span>
        </p>
        <Select
          id="portrait-size"
          label={t.portraitSize}
          value={settings.portrait_size}
          options={(["small", "medium", "large"] as const).map((value) => ({ value, name: t.portraitSizes[value] }))}
          onChange={(portrait_size) => onChange({ portrait_size })}
        />
        <Select
          id="message-style"
          label={t.messageStyle}
          value={settings.message_style}
          options={(["plain", "bubbles"] as const).map((value) => ({ value, name: t.messageStyles[value] }))}
          onChange={(message_style) => onChange({ message_style })}
        />
        <Switch
          id="show-expressions"
          label={t.expressions}
          hint={t.expressionsHint}
          isOn={settings.show_expressions}
          onChange={(show_expressions) => onChange({ show_expressions })}
        />
      </div>
      <h3>{texts.background.title}</h3>
      <p class="muted">{texts.background.hint}</p>
      <BackgroundField
        id="chat-background"
        value={settings.chat_background}
        onChange={(chat_background) => preferences.change({ chat_background })}
      />
    </>
  );
}
