/** A running dictation: level, time, text as it arrives, and actions if it fails. */
import { useEffect, useRef, useState } from "preact/hooks";
import { transcriptionApi } from "../../api/speech.ts";
import { saveFile } from "../../components/ApiFile.tsx";
import { Button, IconButton, LinkButton } from "../../components/Button.tsx";
import { useNow } from "../../components/hooks.ts";
import { Notice } from "../../components/Notice.tsx";
import { BrowserDictation } from "../../speech/browser_dictation.ts";
import { Dictation, keepRecording } from "../../speech/dictation.ts";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatClock } from "../../texts/format.ts";
import { LevelMeter } from "../../components/Progress.tsx";
import type { Press } from "./press.ts";
import { Dialog } from "../../components/overlays/Dialog.tsx";

/** Props of the bar. */
interface DictationBarProps {
  /** Names that the recognizer should know. */
  prompt?: string;
  /** The press that opened the bar: if it lasts and was long, its release ends the dictation. */
  press?: Press;
  /** The chat whose next message may keep the recording. */
  chat?: OpenChat;
  /** Called once with the whole text. */
  onText: (text: string) => void;
  onClose: () => void;
}

/** Starts at once. Closing it releases the microphone. */
export function DictationBar({ prompt = "", press, chat, onText, onClose }: DictationBarProps) {
  const store = useStore();
  const t = texts.talk;
  const [dictation, setDictation] = useState(() => createDictation());
  const bar = useRef<HTMLDivElement>(null);
  function createDictation() {
    return store.device.usesBrowserRecognition.peek()
      ? new BrowserDictation(document.documentElement.lang)
      : new Dictation(transcriptionApi(store.api.client), prompt);
  }
  const again = () => {
    dictation.cancel();
    setDictation(createDictation());
  };
  useEffect(() => {
    store.speaking.stop(); // or the microphone hears it
    void dictation.start();
    bar.current?.focus();
    return () => dictation.cancel();
  }, [dictation]);
  useEffect(() => {
    // If it was released while the bar was loading, it was a tap.
    if (!press?.isDown) return;
    press.onHoldEnd = () => void dictation.finish();
    return () => press.onHoldEnd = undefined;
  }, []);
  const state = dictation.state.value;
  const isDone = state.kind === "done";
  useEffect(() => {
    if (state.kind !== "done") return;
    if (chat && dictation.recording) void keepRecording(store, chat, dictation.recording.wave);
    onText(state.text);
    onClose();
  }, [isDone]);
  const isRecording = state.kind === "recording";
  const now = useNow(isRecording);
  const isRunning = isRecording || state.kind === "asking" || state.kind === "transcribing" || isDone;
  return (
    <div
      ref={bar}
      class="dictation"
      role="group"
      aria-label={t.dictation}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        onClose();
      }}
    >
      {isRunning && (
        <div class="dictation-row">
          <LevelMeter level={dictation.level} />
          <p class="dictation-state" role="status">
            {isRecording ? t.recording : state.kind === "asking" ? t.asking : t.transcribing}
          </p>
          {isRecording && <span class="dictation-clock">{formatClock(now - state.sinceMs)}</span>}
          <IconButton icon="close" label={t.cancel} onClick={onClose} />
          <IconButton
            icon="check"
            kind="primary"
            label={t.finish}
            isDisabled={!isRecording}
            onClick={() => void dictation.finish()}
          />
        </div>
      )}
      {isRunning && dictation.text.value !== "" && <p class="dictation-text">{dictation.text.value}</p>}
      {!isRunning && <DictationEnd dictation={dictation} onAgain={again} onClose={onClose} />}
    </div>
  );
}

/** Explains why there is no text. The recording is kept until the user discards it. */
function DictationEnd(
  { dictation, onAgain, onClose }: {
    dictation: Dictation | BrowserDictation;
    onAgain: () => void;
    onClose: () => void;
  },
) {
  const t = texts.talk;
  const state = dictation.state.value;
  const hasRecording = dictation.recording !== undefined;
  const actions = (
    <>
      {hasRecording && state.kind !== "silent" && (
        <Button kind="primary" onClick={() => void dictation.transcribe()}>{t.transcribeAgain}</Button>
      )}
      {hasRecording && state.kind !== "silent" && (
        <Button onClick={() => saveRecording(dictation)}>{t.saveRecording}</Button>
      )}
      {(!hasRecording || state.kind === "silent") && <Button onClick={onAgain}>{t.recordAgain}</Button>}
      {state.kind === "failed" && state.error.code === "not_available" && (
        <LinkButton href="/settings/voice">{t.setUp}</LinkButton>
      )}
      <Button kind="quiet" onClick={onClose}>{texts.close}</Button>
    </>
  );
  if (state.kind === "silent") return <Notice tone="warning" title={t.silent} actions={actions} />;
  if (state.kind === "no_microphone") {
    return <Notice tone="warning" title={t.problems[state.problem]} actions={actions} />;
  }
  if (state.kind !== "failed") return null;
  const isUnset = state.error.code === "not_available";
  return isUnset
    ? <Notice tone="warning" title={t.noServer} actions={actions}>{t.noServerText}</Notice>
    : <Notice tone="danger" title={t.failed} error={state.error} actions={actions} />;
}

/** Offers the recording as a file. */
function saveRecording({ recording }: Dictation | BrowserDictation): void {
  if (recording) saveFile(recording.wave, "recording.wav");
}

/** @param label Name of the field, for the dialog. The button's name doesn't repeat it: there would be two controls of that name. */
export function DictateButton({ label, onText }: { label: string; onText: (text: string) => void }) {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <IconButton icon="microphone" label={texts.talk.dictateInto} onClick={() => setOpen(true)} />
      {isOpen && (
        <Dialog title={label} onClose={close}>
          <DictationBar prompt={label} onText={onText} onClose={close} />
        </Dialog>
      )}
    </>
  );
}

/** Adds dictated text to a text. */
export function addDictated(text: string, dictated: string): string {
  return text.trim() === "" ? dictated : `${text.trimEnd()} ${dictated}`;
}
