"""What lives for one run or one conversation: see docs/sessions.md."""

from contextgraph.sessions.conversation import Conversation, ConversationWindow, Message
from contextgraph.sessions.items import Item, ItemFile, Items
from contextgraph.sessions.working import WorkingMemory

__all__ = [
    "Conversation",
    "ConversationWindow",
    "Item",
    "ItemFile",
    "Items",
    "Message",
    "WorkingMemory",
]
