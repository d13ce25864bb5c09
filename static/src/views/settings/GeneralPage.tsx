/** General settings: name, language, appearance, and chat behavior. */
import { useState } from "preact/hooks";
import type { Settings } from "../../api/types.ts";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select, Slider, Switch } from "../../components/forms/inputs.tsx";
import { lazy } from "../../components/Lazy.tsx";
import { Notice } from "../../components/Notice.tsx";
import { isOwner } from "../../state/app/access.ts";
import { TEXT_SIZE, type Theme } from "../../state/app/device.ts";
import { canNotify, isNotificationDenied, requestNotifications } from "../../state/app/notifications.ts";
import { useStore } from "../../state/store.ts";
import { LANGUAGES, texts } from "../../texts/texts.ts";
import { BackgroundField } from "../chat/ChatBackground.tsx";

const PushPanel = lazy(() => import("../auth/PushPanel.tsx").then((file) => file.PushPanel));

/** Every change shows at once. */
export function GeneralPage() {
  const store = useStore();
  const { device, preferences } = store;
  const t = texts.general;
  const settings = preferences.settings.value;
  const change = (changes: Partial<Settings>) => {
    preferences.change(changes).catch((thrown) => store.report(thrown));
  };
  const themes = Object.entries(t.themes) as [Theme, string][];
  return (
    <section>
      <h2>{texts.settings.you}</h2>
      <p class="muted">{t.note}</p>
      {(!device.isKept || !store.outbox.isAvailable.value) && <Notice tone="warning">{t.notKept}</Notice>}
      <div class="form">
        {settings && <NameField name={settings.display_name} onChange={(display_name) => change({ display_name })} />}
        <Select
          id="language"
          label={t.language}
          hint={t.languageHint}
          value={device.language.value ?? ""}
          options={[
            { value: "", name: t.languageAuto },
            ...Object.entries(LANGUAGES).map(([value, name]) => ({ value, name, lang: value })),
          ]}
          onChange={(language) => change({ language: language || null })}
        />
      </div>
      <h3>{t.look}</h3>
      <div class="form">
        <Select
          id="theme"
          label={t.theme}
          value={device.theme.value}
          options={themes.map(([value, name]) => ({ value, name }))}
          onChange={(theme) => change({ theme })}
        />
        <Slider
          id="size"
          label={t.size}
          value={device.textSize.value}
          {...TEXT_SIZE}
          format={t.percent}
          onInput={(size) => device.textSize.value = size}
          onChange={(font_size) => change({ font_size })}
        />
        <Select
          id="reading"
          label={t.reading}
          value={device.isSerif.value ? "serif" : "sans"}
          options={[{ value: "sans", name: t.sans }, { value: "serif", name: t.serif }]}
          onChange={(face) => change({ serif: face === "serif" })}
        />
        <Slider
          id="hue"
          class="hue"
          label={t.hue}
          value={device.hue.value}
          min={0}
          max={360}
          step={5}
          onInput={(hue) => device.hue.value = hue}
          onChange={(accent_hue) => change({ accent_hue })}
        />
        <p class="prose sample">{t.sample}</p>
      </div>
      <h3>{t.chats}</h3>
      <div class="form">
        {settings && (
          <>
            <Switch
              id="send-on-enter"
              label={t.sendOnEnter}
              hint={t.sendOnEnterHint}
              isOn={settings.send_on_enter}
              onChange={(send_on_enter) => change({ send_on_enter })}
            />
            <Switch
              id="auto-title"
              label={t.autoTitle}
              hint={t.autoTitleHint}
              isOn={settings.auto_title}
              onChange={(auto_title) => change({ auto_title })}
            />
            <Select
              id="after-restart"
              label={t.afterRestart}
              hint={t.afterRestartHint}
              value={settings.continue_after_restart}
              options={(["private", "always", "never"] as const).map((value) => ({
                value,
                name: t.afterRestartModes[value],
              }))}
              onChange={(continue_after_restart) => change({ continue_after_restart })}
            />
            <Switch
              id="user-markdown"
              label={t.userMarkdown}
              hint={t.userMarkdownHint}
              isOn={settings.user_markdown}
              onChange={(user_markdown) => change({ user_markdown })}
            />
            <Switch
              id="line-breaks"
              label={t.lineBreaks}
              hint={t.lineBreaksHint}
              isOn={settings.line_breaks === "keep"}
              onChange={(isKept) => change({ line_breaks: isKept ? "keep" : "markdown" })}
            />
          </>
        )}
      </div>
      {settings && <RoleplaySettings settings={settings} onChange={change} />}
      <h3>{t.notifications}</h3>
      <div class="form">
        <NotifySwitch />
      </div>
      {isOwner(store.auth.value) && <PushPanel />}
      <h3 id="shortcuts" tabIndex={-1}>{texts.shortcuts.title}</h3>
      <div class="actions-row">
        <Button icon="keyboard" onClick={() => store.overlay.value = "shortcuts"}>{t.showShortcuts}</Button>
      </div>
    </section>
  );
}

/** Saved on blur, not with every key. */
function NameField({ name, onChange }: { name: string; onChange: (name: string) => void }) {
  const [typed, setTyped] = useState<string>();
  const draft = useFormDraft("display_name");
  return (
    <Drafted draft={draft}>
      <TextField
        id="display-name"
        label={texts.general.displayName}
        hint={texts.general.displayNameHint}
        maxLength={200}
        autocomplete="nickname"
        value={typed ?? name}
        onInput={setTyped}
        onChange={(text) => {
          onChange(text.trim());
          draft.clear();
          setTyped(undefined);
        }}
      />
    </Drafted>
  );
}

/** Off by default; explains if the browser denies it. */
function NotifySwitch() {
  const { device } = useStore();
  const t = texts.general;
  const [isRefused, setRefused] = useState(isNotificationDenied());
  const change = async (isOn: boolean) => {
    const isAllowed = isOn && await requestNotifications();
    setRefused(isOn && !isAllowed);
    device.isNotifying.value = isAllowed;
  };
  return (
    <Switch
      id="notify"
      label={t.notify}
      hint={!canNotify() ? t.notifyImpossible : isRefused ? t.notifyRefused : t.notifyHint}
      isOn={device.isNotifying.value && !isRefused}
      isDisabled={!canNotify()}
      onChange={(isOn) => void change(isOn)}
    />
  );
}

/** Part of the general settings. */
function RoleplaySettings(
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
        <Switch
          id="keep-found-lore"
          label={t.keepFoundLore}
          hint={t.keepFoundLoreHint}
          isOn={settings.keep_found_lore}
          onChange={(keep_found_lore) => onChange({ keep_found_lore })}
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
