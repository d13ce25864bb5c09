/** A full-screen voice conversation: its state, the transcript, and a button to end it. */
import { useEffect, useState } from "preact/hooks";
import { Button, IconButton, LinkButton } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import { Switch } from "../../components/forms/inputs.tsx";
import { Modal } from "../../components/overlays/Dialog.tsx";
import type { Message } from "../../api/types.ts";
import { HandsFree, type TalkProblem } from "../../speech/hands_free.ts";
import { getContentText, splitReasoning } from "../../state/chat/message_text.ts";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatNumber } from "../../texts/format.ts";
import { LevelMeter } from "../../components/Progress.tsx";
import { Portrait } from "../../components/Portrait.tsx";
import type { KnownCharacter } from "../../state/characters/profiles.ts";
import { toPortraitProps } from "../characters/Avatars.tsx";
import { stripMarkdown } from "../../markdown/plain_text.ts";

/** Starts at once. Closing it ends the conversation and releases the microphone. */
export function TalkScreen({ chat, onClose }: { chat: OpenChat; onClose: () => void }) {
  const store = useStore();
  const t = texts.talk;
  const [talk] = useState(() => new HandsFree(store, chat));
  useEffect(() => {
    void talk.start();
    return () => talk.close();
  }, []);
  const phase = talk.phase.value;
  const problem = talk.problem.value;
  const isPushToTalk = talk.isPushToTalk.value;
  const times = talk.times.value;
  const isReply = phase === "thinking" || phase === "speaking";
  const isWaiting = phase === "thinking" || phase === "transcribing";
  const shownPhase = problem
    ? "stopped"
    : isWaiting && !store.feed.isLive.value
    ? "away"
    : isPushToTalk && phase === "listening"
    ? "push"
    : phase;
  // With push to talk, there is nothing to mute.
  const isOrbIdle = phase === "starting" || phase === "transcribing" || (isPushToTalk && !isReply && !problem);
  return (
    <Modal label={t.title} class="talk" onClose={onClose}>
      <div class="talk-head">
        <span class="talk-speaker">{isReply && <SpeakerName chat={chat} />}</span>
        <IconButton icon="close" label={t.end} onClick={onClose} />
      </div>
      <div class="talk-body">
        <button
          type="button"
          class={`talk-orb is-${problem ? "muted" : phase}`}
          aria-label={problem ? t.resume : isReply ? t.stopReading : phase === "muted" ? t.unmute : t.mute}
          disabled={isOrbIdle}
          onClick={() => problem ? talk.retry() : isReply ? talk.interrupt() : talk.toggleMute()}
        >
          <SpeakerPortrait chat={chat} />
          <LevelMeter level={talk.level} />
        </button>
        <p class="talk-phase" role="status">{t.phases[shownPhase]}</p>
        {talk.heard.value !== "" && <p class="talk-heard">{t.quote(talk.heard.value)}</p>}
        {talk.note.value === "unclear" && <p class="talk-note">{t.unclear}</p>}
        {talk.note.value === "interrupted" && <p class="talk-note">{t.interrupted}</p>}
        {isReply && <ReplyText chat={chat} />}
        {problem && <TalkProblemNote problem={problem} onRetry={() => talk.retry()} />}
        {!talk.hasVoice.value && (
          <Notice
            tone="warning"
            title={t.noVoice}
            actions={<LinkButton href="/settings/voice">{t.setUp}</LinkButton>}
          />
        )}
      </div>
      <div class="talk-foot">
        {isPushToTalk && (
          <button
            type="button"
            class="button primary talk-hold"
            disabled={phase === "starting" || problem?.kind === "microphone"}
            onPointerDown={(event) => {
              // The release counts wherever the pointer is.
              event.currentTarget.setPointerCapture?.(event.pointerId);
              talk.press();
            }}
            onPointerUp={() => talk.release()}
            onPointerCancel={() => talk.release()}
            onBlur={() => talk.release()}
            onKeyDown={(event) => (event.key === " " || event.key === "Enter") && !event.repeat && talk.press()}
            onKeyUp={(event) => (event.key === " " || event.key === "Enter") && talk.release()}
          >
            {phase === "hearing" ? t.releaseToSend : t.holdToTalk}
          </button>
        )}
        <div class="talk-options">
          <Switch
            label={t.pushToTalk}
            isOn={isPushToTalk}
            onChange={(isOn) => talk.setPushToTalk(isOn)}
          />
          {!isPushToTalk && (
            <Switch
              label={t.interruptible}
              isOn={talk.isInterruptible.value}
              onChange={(isOn) => talk.isInterruptible.value = isOn}
            />
          )}
        </div>
        {times && (
          <p class="talk-times muted">
            {t.times(toSeconds(times.firstAudioMs), toSeconds(times.transcribeMs))}
          </p>
        )}
        <Button icon="stop" onClick={onClose}>{t.end}</Button>
      </div>
    </Modal>
  );
}

function toSeconds(ms: number): string {
  return formatNumber(Math.round(ms / 100) / 10);
}

/** Returns the message that is being read, otherwise the last one: in a group, replies arrive before they are read. */
function useShownMessage(chat: OpenChat): Message | undefined {
  const key = useStore().speaking.now.value?.key;
  return chat.pages.items.value.find(({ id }) => id === key) ?? chat.lastMessage.value;
}

/** The replying character; undefined in a chat without characters. */
function useSpeaker(chat: OpenChat): KnownCharacter | undefined {
  const { people } = useStore();
  const id = useShownMessage(chat)?.character_id ?? chat.options.value.participants?.[0]?.character_id;
  useEffect(() => {
    if (id) people.loadCharacter(id);
  }, [id]);
  return people.character(id);
}

function SpeakerName({ chat }: { chat: OpenChat }) {
  return <>{useSpeaker(chat)?.name ?? texts.chat.assistant}</>;
}

/** Widest orb of speech.css, in CSS pixels. */
const ORB_PX = 240;

/** The portrait of who is talked with; the assistant has a letter. */
function SpeakerPortrait({ chat }: { chat: OpenChat }) {
  const speaker = useSpeaker(chat);
  const props = speaker ? toPortraitProps(speaker) : { name: texts.chat.assistant };
  return <Portrait {...props} widthPx={ORB_PX} class="talk-portrait" />;
}

/** The last part of the reply so far. */
function ReplyText({ chat }: { chat: OpenChat }) {
  const run = chat.replies.run.value;
  const message = useShownMessage(chat);
  const { speaking } = useStore();
  // Between two replies, the last message is the previous one.
  const isRead = message?.role === "assistant" && speaking.now.value?.key === message.id;
  const text = run && run.messageId === message?.id ? run.text.value : isRead ? getContentText(message.content) : "";
  const spoken = stripMarkdown(splitReasoning(text).text);
  return spoken === "" ? null : <p class="talk-reply">{spoken}</p>;
}

function TalkProblemNote({ problem, onRetry }: { problem: TalkProblem; onRetry: () => void }) {
  const t = texts.talk;
  const retry = <Button onClick={onRetry}>{texts.retry}</Button>;
  if (problem.kind === "microphone") {
    return <Notice tone="warning" title={t.problems[problem.problem]} actions={retry} />;
  }
  if (problem.kind === "reply") {
    return <Notice tone="danger" title={t.replyFailed} error={problem.error} actions={retry} />;
  }
  if (problem.error.code === "not_available") {
    const actions = <LinkButton href="/settings/voice">{t.setUp}</LinkButton>;
    return <Notice tone="warning" title={t.noServer} actions={actions}>{t.noServerText}</Notice>;
  }
  return <Notice tone="danger" title={t.failedKept} error={problem.error} actions={retry} />;
}
