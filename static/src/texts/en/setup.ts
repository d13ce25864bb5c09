/** Texts of the first visit. */

/** English. */
export const setup = {
  firstRun: {
    title: "Connect a language model",
    text:
      "Right now, only the built-in demo replies, and it isn’t a language model. Parlor can look for one on this machine.",
    find: "Find a model",
    manual: "Enter a URL",
    later: "Not now",
  },

  welcome: {
    step: (at: number, of: number) => `Step ${at} of ${of}`,
    titles: { model: "Choose a model", name: "Your name", passkey: "Protect Parlor with a passkey" },
    modelText: "Parlor needs a language model to chat with. Looking for servers on this machine.",
    modelThere: (name: string) => `Using “${name}”. You can change this in settings at any time.`,
    nameHint: "What characters and models can call you. Stored on this server and sent only to your models.",
    passkeyLocal:
      "You don’t need a passkey on this machine. From other devices, Parlor asks for one, and each address has its own. You can create one for this address now.",
    passkeyThere: "This address already has a passkey. Add more devices under Settings, Privacy.",
    goOn: "Continue",
    skip: "Skip",
    start: "Start chatting",
    container:
      "Parlor runs in a container and searches only inside it. To search the host machine as well, set this variable as in compose.yaml and restart the container.",
    elsewhere: (hosts: string) =>
      `Parlor searched ${hosts}. It can find a server there only if the server accepts connections from other machines.`,
    listen: "Start each server like this:",
    listenNote: "Other machines on your network can then reach it, too.",
  },
};
