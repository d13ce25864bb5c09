/** Speech: the server, playback, and the library of voice samples. */
import { useEffect, useState } from "preact/hooks";
import { completeScheme } from "../../../../services/http/address_scheme.ts";
import { speechApi } from "../../api/speech.ts";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { VoiceLibrarySection } from "./VoiceLibrarySection.tsx";
import { TranscriptionSection } from "./TranscriptionSection.tsx";
import { useVoices, VoicePicker } from "./VoicePicker.tsx";
import { FoundElsewhere } from "../connections/FoundElsewhere.tsx";
import type { DetectedSpeechServer, Settings, SpeechConfig, SpeechDetection } from "../../api/types.ts";
import { Select, Slider, Switch } from "../../components/forms/inputs.tsx";
import type { SpeechSettings, SpeechTest } from "../../state/speech/speech_settings.ts";
import type { VoiceLibrary } from "../../state/speech/voice_library.ts";
import { formatNumber } from "../../texts/format.ts";
import { Button } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
import { ApiKeyField } from "../../components/forms/ApiKeyField.tsx";
import { AddressField } from "../../components/forms/AddressField.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { ServerForm } from "../../components/forms/ServerForm.tsx";
import { useFormRequests } from "../hooks.tsx";

/** The page; leaving it stops playback. */
export function SpeechPage() {
  const { speaking, connections } = useStore();
  const { speech, library } = useVoices();
  const search = connections.discovery.value;
  useEffect(() => () => speaking.stop(), []);
  const t = texts.voice;
  const error = speech.error.value;
  return (
    <section class="voice-page">
      <h2>{t.title}</h2>
      <p class="muted">{t.intro}</p>
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={() => void speech.refresh()} />}
      {speech.config.value && (
        <>
          <SpeechServerSection speech={speech} config={speech.config.value} />
          <PlaybackSection speech={speech} library={library} config={speech.config.value} />
        </>
      )}
      <TranscriptionSection />
      {search.kind === "done" && (
        <div class="found">
          <FoundElsewhere found={search.found} own={["speech", "transcription"]} />
        </div>
      )}
      <VoiceLibrarySection library={library} />
    </section>
  );
}

/** Range of the speed; the API allows more, which is unintelligible. */
const SPEED = { min: 0.5, max: 2, step: 0.05 };

/** Playback: voices, speed, and whether replies are read automatically. Every change applies at once. */
function PlaybackSection(
  { speech, library, config }: { speech: SpeechSettings; library: VoiceLibrary; config: SpeechConfig },
) {
  const store = useStore();
  const [speed, setSpeed] = useState<number>();
  const settings = store.preferences.settings.value;
  const t = texts.voice;
  const showFailure = (thrown: unknown) => store.report(thrown);
  const change = (changes: Partial<Settings>) => void store.preferences.change(changes).catch(showFailure);
  const count = speech.choice.value?.voices.length ?? 0;
  return (
    <>
      <h3>{t.sound}</h3>
      <div class="form">
        <VoicePicker
          id="voice"
          draftKey="voice_name:voice"
          label={t.voice}
          hint={speech.choice.value && t.trial.voices[speech.choice.value.source](count)}
          standard={t.serverVoice}
          speech={speech}
          library={library}
          value={config.voice}
          onChange={(voice) => void speech.change({ voice }).catch(showFailure)}
        />
        <Slider
          id="speed"
          label={t.speed}
          {...SPEED}
          value={speed ?? config.speed}
          format={(times) => t.times(formatNumber(times))}
          onInput={setSpeed}
          onChange={(chosen) => {
            void speech.change({ speed: chosen }).catch(showFailure).finally(() => setSpeed(undefined));
          }}
        />
        {settings && (
          <>
            <VoicePicker
              id="speech-voice"
              draftKey="voice_name:speech-voice"
              label={t.quoted}
              hint={t.quotedHint}
              standard={t.sameAsAbove}
              speech={speech}
              library={library}
              value={settings.speech_voice ?? ""}
              onChange={(voice) => change({ speech_voice: voice || null })}
            />
            <VoicePicker
              id="narration-voice"
              draftKey="voice_name:narration-voice"
              label={t.narration}
              hint={t.narrationHint}
              standard={t.speakerVoice}
              speech={speech}
              library={library}
              value={settings.narration_voice ?? ""}
              onChange={(voice) => change({ narration_voice: voice || null })}
            />
            <Switch
              id="auto-speak"
              label={t.auto}
              hint={t.autoHint}
              isOn={settings.auto_speak}
              onChange={(auto_speak) => change({ auto_speak })}
            />
          </>
        )}
      </div>
    </>
  );
}

type Changes = Partial<{ base_url: string; model: string; voice: string; format: (typeof FORMATS)[number] }>;

/** Selectable formats; the first starts soonest. */
const FORMATS = ["mp3", "opus", "aac", "flac", "wav", "pcm"] as const;

/** The form. A test saves it first. */
function SpeechServerSection({ speech, config }: { speech: SpeechSettings; config: SpeechConfig }) {
  const store = useStore();
  const t = texts.voice;
  const [typed, setTyped] = useState<Changes>({});
  const [key, setKey] = useState("");
  const { busy, failure, run } = useFormRequests<"save" | "try">();
  const [detection, setDetection] = useState<{ address: string; result: SpeechDetection }>();
  const search = store.connections.discovery.value;
  const found = search.kind === "done" ? search.found.speech : undefined;
  const fields = { ...config, ...typed };
  const address = fields.base_url.trim();
  const draft = useFormDraft("speech");
  /** Finds out what the server at a typed address is. Save reports problems with the address. */
  const detect = (typedAddress: string) => {
    if (typedAddress.trim() === "") return;
    speechApi(store.api.client).detectSpeechServer(typedAddress).then(
      (result) => setDetection({ address: completeScheme(typedAddress), result }),
      () => setDetection(undefined),
    );
  };
  const use = (server: DetectedSpeechServer) => {
    set({ base_url: server.base_url, model: server.models[0] ?? "", voice: "" });
    setDetection({ address: server.base_url, result: { reachable: true, ...server } });
    if (server.needs_key) document.getElementById("speech-key")?.focus();
  };
  const set = (changes: Changes) => {
    setTyped((before) => ({ ...before, ...changes }));
    speech.test.value = undefined;
  };
  const submit = (name: "save" | "try", next: () => Promise<void> | void) =>
    run(name, async () => {
      await speech.change({ ...typed, ...(key === "" ? {} : { api_key: key }) });
      draft.clear();
      // What was typed meanwhile stays.
      setTyped((now) => now === typed ? {} : now);
      setKey((now) => now === key ? "" : now);
      await next();
    });
  const clearKey = () =>
    run("save", async () => {
      await speech.change({ api_key: null });
      speech.test.value = undefined;
      store.toasts.show(texts.form.keyCleared);
    });
  return (
    <>
      <h3>{t.server}</h3>
      <ServerForm onSubmit={() => submit("save", () => store.toasts.show(t.saved))}>
        <Drafted draft={draft}>
          <div onChange={(event) => detect((event.target as HTMLInputElement).value)}>
            <AddressField
              id="speech-url"
              label={t.url}
              hint={t.urlHint}
              value={fields.base_url}
              onInput={(base_url) => set({ base_url })}
            />
          </div>
          {detection?.address === address && <DetectedKind detection={detection.result} />}
          {found && (
            found.length === 0
              ? <p class="muted" role="status">{t.noneFound}</p>
              : (
                <ul class="found-servers" aria-label={t.found}>
                  {found.map((server) => (
                    <li key={server.base_url}>
                      <Button onClick={() => use(server)}>
                        {texts.talk.settings.use(server.software, server.base_url)}
                      </Button>
                    </li>
                  ))}
                </ul>
              )
          )}
          <ApiKeyField
            id="speech-key"
            keyState={{ stored: config, address: fields.base_url, typed: key }}
            hint={t.keyHint}
            onInput={(typedKey) => {
              setKey(typedKey);
              speech.test.value = undefined;
            }}
            onClear={clearKey}
          />
          <TextField
            id="speech-model"
            isMono
            label={t.model}
            hint={speech.models.value.length > 0 ? t.modelOffered(speech.models.value.length) : t.modelHint}
            list={speech.models.value}
            value={fields.model}
            onInput={(model) => set({ model })}
          />
          <Select
            id="speech-format"
            label={t.format}
            hint={t.formatHint}
            value={fields.format as (typeof FORMATS)[number]}
            options={FORMATS.map((value) => ({ value, name: t.formats[value] }))}
            onChange={(format) => set({ format })}
          />
        </Drafted>
        {speech.test.value && <SpeechTestResult test={speech.test.value} />}
        {search.kind === "failed" && <ErrorNote title={texts.connections.discoverFailed} error={search.error} />}
        {failure && <ErrorNote title={t.saveFailed} error={failure.error} />}
        <div class="actions-row">
          <Button type="submit" kind="primary" isBusy={busy === "save"}>{texts.save}</Button>
          <Button
            icon="speaker"
            isBusy={busy === "try"}
            isDisabled={fields.base_url.trim() === ""}
            onClick={() => void submit("try", () => speech.try(t.sentence))}
          >
            {busy === "try" ? t.trying : t.try}
          </Button>
          <Button
            icon="search"
            isBusy={search.kind === "searching"}
            onClick={() => void store.connections.discover()}
          >
            {t.findServers}
          </Button>
        </div>
      </ServerForm>
    </>
  );
}

/** What the server at the address is. */
function DetectedKind({ detection }: { detection: SpeechDetection }) {
  const t = texts.voice;
  const { reachable, software, models = [], voices = 0, needs_key } = detection;
  if (!reachable) return <Notice tone="warning">{t.noResponse}</Notice>;
  if (software === undefined) return <Notice tone="warning">{t.notDetected}</Notice>;
  const facts = [
    software,
    needs_key && texts.connections.needsKey,
    models.length > 0 && t.trial.models(models.length),
    voices > 0 && t.trial.voices.upstream(voices),
  ];
  return <p class="muted" role="status">{facts.filter(Boolean).join(" · ")}</p>;
}

/** Renders nothing while the test runs: the button shows that. */
function SpeechTestResult({ test }: { test: SpeechTest }) {
  const t = texts.voice.trial;
  if (test.kind === "running") return null;
  if (test.kind === "failed") return <ErrorNote title={t.bad} error={test.error} />;
  const { firstSoundMs, models, choice } = test;
  return (
    <div class="test-result good" role="status">
      <p class="test-result-title">
        <Icon name="check" />
        <strong>{t.good}</strong>
      </p>
      <ul>
        <li>{t.firstSound(formatNumber(Math.round(firstSoundMs)))}</li>
        <li>{models === undefined ? t.noModels : t.models(models)}</li>
        <li>{t.voices[choice.source](choice.voices.length)}</li>
      </ul>
    </div>
  );
}
